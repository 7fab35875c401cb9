import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { namedStatements } from './support/statements';

const ROOT = join(__dirname, '..');
const NOT_OURS = new Set(['node_modules', 'dist', 'test', 'bench', 'migrations']);

/** Names that stand for more than one text, each of which a connection that knows the other one refuses. */
function ambiguous(sources: readonly string[]): string[] {
  const texts = new Map<string, Set<string>>();
  for (const { name, text } of sources.flatMap(namedStatements))
    texts.set(name, (texts.get(name) ?? new Set()).add(text));
  return [...texts].flatMap(([name, of]) => (of.size > 1 ? [name] : []));
}

test('a statement that has a name has it alone', () => {
  const rooms = readdirSync(ROOT, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith('.') && !NOT_OURS.has(entry.name),
  );
  const sources = rooms.flatMap(({ name: room }) =>
    readdirSync(join(ROOT, room), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8')),
  );
  expect(sources.flatMap(namedStatements).length).toBeGreaterThan(100);
  expect(ambiguous(sources)).toEqual([]);
});

test('two texts under one name are told, the same text twice is not', () => {
  const call = (text: string, name: string) =>
    `await db.query<{ id: string }>(\n  ${text},\n  [f(a, 'b')],\n  '${name}',\n);`;
  const one = call("'select 1'", 'one');
  expect(ambiguous([one, one, call('`select ${it}`', 'two')])).toEqual([]);
  expect(ambiguous([one + call("'select id'", 'one')])).toEqual(['one']);
});
