import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { namedStatements } from '../support/statements';

const ROOT = join(__dirname, '../..');
const NOT_OURS = new Set(['node_modules', 'dist', 'test', 'bench', 'migrations']);

const statementsOf = (sources: ReadonlyMap<string, string>) =>
  [...sources].flatMap(([file, source]) => namedStatements(source, file));

/** Names that stand for more than one text, each of which a connection that knows the other one refuses. */
function ambiguous(sources: ReadonlyMap<string, string>): string[] {
  const texts = new Map<string, Set<string>>();
  for (const { name, text } of statementsOf(sources)) texts.set(name, (texts.get(name) ?? new Set()).add(text));
  return [...texts].flatMap(([name, of]) => (of.size > 1 ? [name] : []));
}

test('a statement that has a name has it alone', () => {
  const rooms = readdirSync(ROOT, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith('.') && !NOT_OURS.has(entry.name),
  );
  const files = rooms.flatMap(({ name: room }) =>
    readdirSync(join(ROOT, room), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file): [string, string] => [file, readFileSync(file, 'utf8')]),
  );
  const sources = new Map(files);
  expect(statementsOf(sources).length).toBeGreaterThan(100);
  expect(ambiguous(sources)).toEqual([]);
});

test('two texts under one name are reported, the same text twice is not', () => {
  const call = (text: string, name: string) =>
    `await db.query<{ id: string }>(\n  ${text},\n  [f(a, 'b')],\n  '${name}',\n);`;
  const of = (...sources: string[]) => ambiguous(new Map(sources.map((source, n) => [`${n}.ts`, source])));
  const one = call("'select 1'", 'one');
  expect(of(one + one, one, call('`select ${it}`', 'two'))).toEqual([]);
  expect(of(one + call("'select id'", 'one'))).toEqual(['one']);
  expect(of(one, call("'select id'", 'one'))).toEqual(['one']);
  const constant = (text: string) => `const READ = \`${text}\`;\n${call('READ', 'one')}`;
  expect(of(constant('select 1'), constant('select 1'))).toEqual([]);
  expect(of(constant('select 1'), constant('select id'))).toEqual(['one']);
  expect(of(call('text', 'one'), call('text', 'one'))).toEqual(['one']);
});
