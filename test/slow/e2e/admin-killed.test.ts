import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { LOCKS } from '../../../engines/locks/port';
import { testDatabase, type TestDatabase } from '../../support/database';
import { runLumio, settingsOf, spawnLumio } from '../../support/server';
import { eventually } from '../../support/vendor-cloud';

/** `lumio admin` writes a profile or a secret before its event, and is killed between the two. */
describe('lumio admin, killed before its event', () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-admin-killed-'));
  const secret_file = join(data_dir, 'secret');
  let database: TestDatabase;
  let blocker: pg.Client;
  let env: Record<string, string>;

  beforeAll(async () => {
    database = await testDatabase(2);
    blocker = new pg.Client({ connectionString: database.url });
    await blocker.connect();
    writeFileSync(secret_file, 'a secret');
    env = {
      ...settingsOf(data_dir),
      LUMIO_ENV: 'production',
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
    };
  });
  afterAll(async () => {
    await blocker?.end();
    await database?.drop();
    rmSync(data_dir, { recursive: true, force: true });
  });

  const admin = async (...args: string[]) => {
    const { code, stdout, stderr } = await runLumio(['admin', ...args], env);
    expect([args, code, stderr.replace(/^lumio: it is stored.*\n$/, '')]).toEqual([args, 0, '']);
    return JSON.parse(stdout);
  };
  const count = async (sql: string) => (await database.db.query<{ n: number }>(sql))[0]!.n;
  const events = () => count('select count(*)::int as n from domain_events');

  /** Runs the command until its append waits for the lock of all appends, and kills it there. */
  async function killed(...args: string[]): Promise<void> {
    const before = await events();
    await blocker.query('select pg_advisory_lock($1)', [LOCKS.event_order]);
    const child = spawnLumio(['admin', ...args], env);
    child.stdout.resume();
    child.stderr.resume();
    const waiting = `from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and wait_event = 'advisory'`;
    await eventually(
      async () => ((await count(`select count(*)::int as n ${waiting}`)) > 0 ? true : undefined),
      'the append to wait',
    );
    child.kill('SIGKILL');
    await once(child, 'close');
    // Its statement waits on in the server, and would be carried out.
    await blocker.query(`select pg_terminate_backend(pid) ${waiting}`);
    await eventually(
      async () => ((await count(`select count(*)::int as n ${waiting}`)) === 0 ? true : undefined),
      'the append to be gone',
    );
    await blocker.query('select pg_advisory_unlock($1)', [LOCKS.event_order]);
    expect(await events()).toBe(before);
  }
  const profiles = (name: string) =>
    database.db.query<{ user_id: string }>('select user_id from profiles where display_name = $1', [name]);

  test('a user with an identity is taken up by the next call, under the same id', async () => {
    const ada = ['create-user', '--name', 'Ada', '--provider', 'kick', '--provider-id', '42'];
    await killed(...ada);
    const [left, ...others] = await profiles('Ada');
    expect(others).toEqual([]);
    expect(await admin(...ada)).toEqual({ user_id: left!.user_id, created: true });
    expect(await admin(...ada)).toEqual({ user_id: left!.user_id, created: false });
    expect(await profiles('Ada')).toEqual([left]);
  });

  test('the profile of a user whom nothing names is dropped by a later call, and nobody else’s is', async () => {
    const bo = await admin('create-user', '--name', 'Bo');
    await killed('create-user', '--name', 'Nobody');
    expect(await profiles('Nobody')).toHaveLength(1);
    // Another call may just be making it.
    await admin('create-user', '--name', 'Cy');
    expect(await profiles('Nobody')).toHaveLength(1);
    // No read model shows anybody here: nothing projects.
    await database.db.query("update profiles set updated_at = updated_at - interval '1 hour'");
    await admin('create-user', '--name', 'Di');
    expect(await profiles('Nobody')).toEqual([]);
    expect(await profiles('Bo')).toEqual([{ user_id: bo.user_id }]);
    expect(await profiles('Cy')).toHaveLength(1);
  });

  test('a shop is taken up by the next call, under the same id and with one secret', async () => {
    const { user_id } = await admin('create-user', '--name', 'Ed');
    const { account_id } = await admin('create-account', '--owner', user_id, '--name', 'Ed live');
    const shop = ['connect', '--account', account_id, '--shop', 'ed.myshopify.com', '--secret-file', secret_file];
    await killed(...shop);
    const secrets = () => database.db.query<{ connection_id: string }>('select connection_id from connection_secrets');
    const left = await secrets();
    expect(left).toHaveLength(1);
    expect(await admin(...shop)).toEqual({ connection_id: left[0]!.connection_id, created: true });
    expect(await admin(...shop)).toEqual({ connection_id: left[0]!.connection_id, created: false });
    expect(await secrets()).toEqual(left);
  });
});
