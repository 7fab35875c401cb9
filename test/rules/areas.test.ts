import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { areasOf } from '../../bin/areas';
import { AREA_ROOMS } from '../support/areas-page';

const ROOT = join(__dirname, '../..');
const MAX_FILES = 18;

/** Names of areas that lie in several contexts, with these contexts. */
function scattered(files: readonly { context: string; name: string }[]): string[] {
  const contexts = new Map<string, Set<string>>();
  for (const { context, name } of files) contexts.set(name, (contexts.get(name) ?? new Set()).add(context));
  return [...contexts].flatMap(([name, of]) => (of.size > 1 ? [`${name}: ${[...of].sort().join(', ')}`] : []));
}

test('an area has the same path in every room', () => {
  const files = AREA_ROOMS.flatMap(areasOf);
  expect(files.length).toBeGreaterThan(150);
  expect(scattered(files)).toEqual([]);
});

test('an area in two contexts is found', () => {
  const roles = { name: 'roles' };
  expect(scattered([{ ...roles, context: 'accounts' }])).toEqual([]);
  expect(
    scattered([
      { ...roles, context: 'operators' },
      { ...roles, context: 'accounts' },
    ]),
  ).toEqual(['roles: accounts, operators']);
});

test.each(AREA_ROOMS)('%s has nothing outside its contexts', (room) => {
  const flat = readdirSync(join(ROOT, room)).filter((file) => file.endsWith('.ts'));
  expect(flat).toEqual([]);
});

test('no folder of the product holds more files than one can overlook', () => {
  const outside = new Set(['bench', 'dist', 'docs', 'migrations', 'node_modules', 'scripts', 'test']);
  const folders = readdirSync(ROOT, { withFileTypes: true, recursive: false })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !outside.has(entry.name))
    .flatMap(({ name }) => readdirSync(join(ROOT, name), { withFileTypes: true, recursive: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map(({ parentPath }) => parentPath.slice(ROOT.length + 1));
  const counts = new Map<string, number>();
  for (const folder of folders) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  expect([...counts].filter(([, count]) => count > MAX_FILES)).toEqual([]);
});
