import { migrate } from '../engines/postgres/migrate';
import { MIGRATIONS, type Migration } from '../migrations';
import { emptyDatabase, ORDINARY_ROLE, type TestDatabase } from './support/database';

describe('migrations', () => {
  let target: TestDatabase;
  beforeAll(async () => {
    target = await emptyDatabase();
  });
  afterAll(() => target.drop());

  test('twelve starts at once migrate once', async () => {
    const starts = await Promise.allSettled(Array.from({ length: 12 }, () => migrate(target.url)));
    expect(starts.filter((start) => start.status === 'rejected')).toEqual([]);
    const applied = starts.map((start) => (start.status === 'fulfilled' ? start.value.length : 0));
    expect(applied.filter((count) => count > 0)).toHaveLength(1);
  });

  test('the role that they ran as has no right beyond its own database', async () => {
    const [role] = await target.db.query(
      `select rolname, rolsuper, rolcreatedb, rolcreaterole, pg_has_role(oid, 'pg_read_all_settings', 'member') as reads_settings
         from pg_roles where rolname = current_user`,
    );
    const none = { rolsuper: false, rolcreatedb: false, rolcreaterole: false, reads_settings: false };
    expect(role).toEqual({ rolname: ORDINARY_ROLE, ...none });
  });

  test('steps that a newer build applied are left as they are, and its own still come', async () => {
    const newer = await emptyDatabase();
    const [last] = MIGRATIONS.slice(-1);
    const added: Migration = { name: '9000-of-a-newer-build', up: (db) => db.schema.createTable('later', () => {}) };
    await migrate(newer.url, { steps: [...MIGRATIONS.slice(0, -1), added] });
    expect(await migrate(newer.url)).toEqual([last!.name]);
    expect(await migrate(newer.url)).toEqual([]);
    expect(await newer.db.query('select 1 from later')).toEqual([]);
    await newer.drop();
  });

  test('a step that ends the builds before names its generation with it, and refuses them from then on', async () => {
    const newer = await emptyDatabase();
    const fails: Migration = {
      name: '9000-breaking',
      generation: 2,
      up: () => Promise.reject(new Error('planted')),
    };
    await migrate(newer.url);
    await expect(migrate(newer.url, { steps: [...MIGRATIONS, fails] })).rejects.toThrow('planted');
    expect(await migrate(newer.url)).toEqual([]);
    const breaking: Migration = { ...fails, up: (db) => db.schema.dropTable('leases') };
    const steps = [...MIGRATIONS, breaking];
    expect(await migrate(newer.url, { steps })).toEqual(['9000-breaking']);
    await expect(migrate(newer.url)).rejects.toThrow(
      /^the database needs a newer Lumio \(its schema generation is 2, this build knows 1\): start the newer build[^\n]*$/,
    );
    expect(await migrate(newer.url, { steps })).toEqual([]);
    await newer.drop();
  });

  test('a second run applies nothing', async () => {
    const twice = await emptyDatabase();
    expect(await migrate(twice.url)).toEqual(MIGRATIONS.map(({ name }) => name));
    expect(await migrate(twice.url)).toEqual([]);
    await twice.drop();
  });
});
