import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** So many lines that stand twice could be one piece. */
const LINES = 6;
/** Lines that say less together are brackets and names that every file has. */
const LEAST_CHARACTERS = 90;

/** A file that is made of declarations says again what they say. */
const MADE = /^\/\/ Made by `npm run [a-z]+`/;

interface Line {
  number: number;
  text: string;
}

/**
 * The lines of a file that say something: without comments, imports and empty lines, whatever the space between words.
 */
function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  let within: 'comment' | 'import' | undefined;
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim().replace(/\s+/g, ' ');
    if (within === undefined && line.startsWith('/*')) within = 'comment';
    if (within === undefined && line.startsWith('import ')) within = 'import';
    if (within === undefined && line !== '' && !line.startsWith('//')) lines.push({ number: index + 1, text: line });
    const end = within === 'comment' ? line.includes('*/') : line.endsWith(';');
    if (end) within = undefined;
  }
  return lines;
}

/** Where the same six lines of TypeScript below these folders stand again: `first:line = second:line`. */
export function duplicates(root: string, rooms: readonly string[]): string[] {
  const first = new Map<string, string>();
  const found: string[] = [];
  for (const room of rooms) {
    for (const entry of readdirSync(join(root, room), { withFileTypes: true, recursive: true })) {
      if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
      const path = join(entry.parentPath, entry.name);
      const text = readFileSync(path, 'utf8');
      if (MADE.test(text)) continue;
      const lines = linesOf(text);
      // Where one begins, its other lines are the same find.
      for (let at = 0, told = -LINES; at + LINES <= lines.length; at += 1) {
        const block = lines.slice(at, at + LINES).map(({ text }) => text);
        if (block.join('').length < LEAST_CHARACTERS) continue;
        const key = block.join('\n');
        const here = `${relative(root, path)}:${lines[at]!.number}`;
        const there = first.get(key);
        if (there === undefined) first.set(key, here);
        else if (at - told >= LINES) {
          found.push(`${there} = ${here}`);
          told = at;
        }
      }
    }
  }
  return found;
}
