import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Version of the running release from package.json, two folders above the compiled file. Spec doc1 §9. */
export const VERSION: string = (
  JSON.parse(readFileSync(join(__dirname, '../../package.json'), 'utf8')) as { version: string }
).version;
