import { migrate } from '../engines/postgres/migrate';
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

  test('a second run applies nothing', async () => {
    expect(await migrate(target.url)).toEqual([]);
  });
});
