import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplicates } from '../support/duplicates';

const ROOT = join(__dirname, '../..');
const NOT_PRODUCTION = new Set(['bench', 'dist', 'docs', 'migrations', 'node_modules', 'scripts', 'test']);

test('no six lines of production code stand twice', () => {
  const rooms = readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !NOT_PRODUCTION.has(entry.name))
    .map(({ name }) => name);
  expect(rooms).toContain('engines');
  expect(duplicates(ROOT, rooms)).toEqual([]);
});

test('six lines that do are found, in one file and in two, and five are not', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-duplicates-'));
  try {
    mkdirSync(join(folder, 'room'));
    const block = (lines: number) =>
      Array.from({ length: lines }, (_, n) => `const something_long_enough_${n} = ${n};`).join('\n');
    writeFileSync(
      join(folder, 'room/a.ts'),
      `import one from 'one';\n// A comment.\n${block(6)}\nlet a;\n${block(5)}\n`,
    );
    expect(duplicates(folder, ['room'])).toEqual([]);
    writeFileSync(join(folder, 'room/b.ts'), `/**\n * Another.\n */\n${block(6).replaceAll(' = ', '  =  ')}\n`);
    expect(duplicates(folder, ['room'])).toEqual(['room/a.ts:3 = room/b.ts:4']);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
