import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { documents } from './support/documents';

test.each(documents())('%s is what `npm run documents` makes of the declarations', (path, text) => {
  expect(readFileSync(join(__dirname, '..', path), 'utf8')).toBe(text);
});
