import { migrate } from '../../engines/postgres/migrate';
import { LOCKS } from '../../engines/locks/port';
import { MIGRATIONS, type Migration } from '../../migrations';
import { until } from '../contracts/event-store';
import { emptyDatabase, ORDINARY_ROLE, type TestDatabase } from '../support/database';
import { timeLimit } from '../support/patience';

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

  test('a step behind a held lock delays others no longer than its bound', async () => {
    const held = await emptyDatabase();
    await migrate(held.url);
    const holder = await held.db.pool.connect();
    await holder.query('begin');
    await holder.query('select * from leases');
    const altering: Migration = {
      name: '9000-altering',
      up: (db) => db.raw('alter table leases add column extra int'),
    };
    let done = false;
    const step = migrate(held.url, { steps: [...MIGRATIONS, altering] }).finally(() => (done = true));
    await until(
      async () =>
        (await held.db.query(`select 1 from pg_locks where relation = 'leases'::regclass and not granted`)).length > 0,
      'the step to wait',
    );
    const began = performance.now();
    expect(await held.db.query('select name from leases')).toEqual([]);
    expect(performance.now() - began).toBeLessThan(timeLimit(6_000));
    expect(done).toBe(false);
    await holder.query('commit');
    holder.release();
    expect(await step).toEqual(['9000-altering']);
    await held.drop();
  });

  test('steps that were applied before one failed stay, and the next run goes on with that one', async () => {
    const killed = await emptyDatabase();
    await migrate(killed.url);
    const first: Migration = { name: '9000-first', up: (db) => db.schema.createTable('first', () => {}) };
    const second: Migration = { name: '9001-second', up: (db) => db.schema.createTable('second', () => {}) };
    const cut: Migration = { ...second, up: (db) => db.raw('select pg_terminate_backend(pg_backend_pid())') };
    await expect(migrate(killed.url, { steps: [...MIGRATIONS, first, cut] })).rejects.toThrow();
    expect(await killed.db.query('select 1 from first')).toEqual([]);
    expect(await migrate(killed.url, { steps: [...MIGRATIONS, first, second] })).toEqual(['9001-second']);
    await killed.drop();
  });

  test('pending steps are refused while a backup runs, and no backup begins beside them', async () => {
    const busy = await emptyDatabase();
    await migrate(busy.url);
    const added: Migration = { name: '9000-added', up: (db) => db.schema.createTable('added', () => {}) };
    const backup = await busy.db.pool.connect();
    await backup.query('begin');
    await backup.query('select pg_advisory_xact_lock_shared($1)', [LOCKS.backup]);
    await expect(migrate(busy.url, { steps: [...MIGRATIONS, added] })).rejects.toThrow(
      /^a backup of the database runs, and schema steps are pending: [^\n]*$/,
    );
    expect(await migrate(busy.url)).toEqual([]);
    await backup.query('commit');
    backup.release();
    expect(await migrate(busy.url, { steps: [...MIGRATIONS, added] })).toEqual(['9000-added']);
    await busy.drop();
  });

  test('a second run applies nothing', async () => {
    const twice = await emptyDatabase();
    expect(await migrate(twice.url)).toEqual(MIGRATIONS.map(({ name }) => name));
    expect(await migrate(twice.url)).toEqual([]);
    await twice.drop();
  });
});
