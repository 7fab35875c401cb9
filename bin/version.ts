import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The running build, as package.json (two folders above the compiled file) names it. Spec doc1 §9. */
export const VERSION: string = (
  JSON.parse(readFileSync(join(__dirname, '../../package.json'), 'utf8')) as { version: string }
).version;
