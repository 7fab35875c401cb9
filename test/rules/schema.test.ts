import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { migrate } from '../../engines/postgres/migrate';
import { MIGRATIONS } from '../../migrations';
import { FUNCTIONS } from '../../migrations/functions';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database';
import { dumpSchema, functionsOf, unraised } from '../support/schema';

const FILE = join(__dirname, '../../migrations/schema.sql');

describe('the schema', () => {
  let t: TestDatabase;
  beforeAll(async () => (t = await testDatabase()));
  afterAll(() => t.drop());

  test('is what migrations/schema.sql shows (npm run schema writes it)', async () => {
    expect(await dumpSchema(t.db)).toBe(readFileSync(FILE, 'utf8'));
  });

  test('shows every partitioned table with its columns', async () => {
    const parents = await t.db.query<{ name: string }>(
      `select relname::text as name from pg_partitioned_table join pg_class on oid = partrelid order by relname`,
    );
    const shown = readFileSync(FILE, 'utf8');
    expect(parents.map(({ name }) => name)).toContain('ledger');
    expect(parents.filter(({ name }) => !shown.includes(`create table ${name} (\n`))).toEqual([]);
  });

  test('has no function of ours beside those of migrations/functions, and each in its version', async () => {
    const rows = await t.db.query(
      `select proname::text as name, obj_description(oid, 'pg_proc') as comment from pg_proc
       where pronamespace = 'public'::regnamespace order by proname`,
    );
    expect(rows).toEqual(FUNCTIONS.map(({ name, version }) => ({ name, comment: `version ${version}` })));
  });
});

describe('functions of the database', () => {
  const leave = FUNCTIONS.find(({ name }) => name === 'broker_leave')!;
  const changed = { ...leave, text: leave.text.replace('begin', 'begin\n  -- changed') };
  const bodyOf = async ({ db }: TestDatabase) =>
    (await db.query(`select prosrc from pg_proc where proname = 'broker_leave'`))[0]!.prosrc as string;
  let t: TestDatabase;
  beforeAll(async () => (t = await testDatabase()));
  afterAll(() => t.drop());

  test('a higher version takes the place of the one that is there, and stays when the build before starts again', async () => {
    await migrate(t.url, { functions: [{ ...changed, version: leave.version + 1 }] });
    expect(await bodyOf(t)).toContain('-- changed');
    await migrate(t.url);
    expect(await bodyOf(t)).toContain('-- changed');
  });

  test('those that the steps of earlier builds made are replaced', async () => {
    const earlier = await emptyDatabase();
    await migrate(earlier.url, { functions: [] });
    await migrate(earlier.url);
    const functions = async (of: TestDatabase) => functionsOf(await dumpSchema(of.db));
    expect(await functions(earlier)).toEqual(functionsOf(readFileSync(FILE, 'utf8')));
    await earlier.drop();
  });

  test('one that fails leaves all of them as they were', async () => {
    const before = await dumpSchema(t.db);
    const [first] = FUNCTIONS;
    const broken = { ...leave, version: 99, text: leave.text.replace('begin', 'begin planted') };
    await expect(migrate(t.url, { functions: [{ ...first!, version: 99 }, broken] })).rejects.toThrow('planted');
    expect(await dumpSchema(t.db)).toBe(before);
  });

  test('a text that changed under its version is told by name', () => {
    const dump = (version: number, text: string) =>
      `-- head\n\n-- function first, version ${version}\n${text};\n\n-- function other, version 1\nsame;\n`;
    expect(unraised(dump(1, 'old'), dump(1, 'new'))).toEqual(['first']);
    expect(unraised(dump(2, 'old'), dump(1, 'old'))).toEqual(['first']);
    expect(unraised(dump(1, 'old'), dump(2, 'new'))).toEqual([]);
    expect(unraised(dump(1, 'old'), dump(1, 'old'))).toEqual([]);
  });

  test('come from migrations/functions alone since those files exist', () => {
    const steps = MIGRATIONS.map(({ name }) => name).filter((name) => name > '0030');
    const texts = steps.map((name) => [name, readFileSync(join(__dirname, '../../migrations', `${name}.ts`), 'utf8')]);
    const making = texts.filter(([, text]) => /create (or replace )?(function|procedure)/i.test(text!));
    expect(making.map(([name]) => name)).toEqual([]);
  });
});
