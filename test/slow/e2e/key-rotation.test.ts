import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENCRYPTED_COLUMNS } from '../../../cli/runtime/encrypted-columns';
import type { Queryable } from '../../../engines/postgres/port';
import { parseMasterKeys } from '../../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../../privacy/subject-keys/postgres';
import { testDatabase, type TestDatabase } from '../../support/database';
import { until } from '../../support/projections';
import { runLumio, settingsOf, spawnLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually, VendorCloud } from '../../support/vendor-cloud';

/** What an operator does to be rid of a master key, with a server running and a command that is killed on its way. */
describe('a master key is replaced by the command line', () => {
  const OLD = `k1:${randomBytes(32).toString('base64')}`;
  const FRESH = `k2:${randomBytes(32).toString('base64')}`;
  let database: TestDatabase;
  let data_dir: string;
  let server: TestServer | undefined;
  beforeAll(async () => {
    database = await testDatabase(3);
    data_dir = mkdtempSync(join(tmpdir(), 'lumio-rotation-'));
  });
  afterAll(async () => {
    await server?.dispose();
    await database.drop();
    rmSync(data_dir, { recursive: true, force: true });
  });

  const settings = (keys: string) => ({
    LUMIO_DATABASE__URL: database.url,
    LUMIO_SECRETS__KEYS: keys,
    LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true',
    LUMIO_HOSTS__WEB: 'https://app.example',
  });
  async function serve(keys: string): Promise<ApiClient> {
    if (server) expect(await server.stop()).toBe(0);
    server = await startServer({ env: settings(keys), data_dir });
    return new ApiClient(server.base_url, server.credentials.access_token);
  }
  const lumio = (keys: string, ...args: string[]) => runLumio(args, { ...settingsOf(data_dir), ...settings(keys) });

  test('old, then both, then rotated (killed once), then the new one alone: everything still opens', async () => {
    const first = await serve(OLD);
    const vendors = new VendorCloud(server!.base_url, server!.credentials);
    expect((await vendors.kickFollow(4711)).status).toBe(200);
    const login = { provider: 'twitch', provider_id: '7', access_token: 'development:7' };
    expect((await first.send('POST', '/v1/auth/token/exchange', login)).status).toBe(200);
    const app = { client_id: 'ours', client_secret: 'hidden' };
    expect((await first.send('PUT', '/v1/connections/credentials/twitch', app)).status).toBe(200);
    const begun = { kind: 'channel', return_to: 'https://app.example/done' };
    expect((await first.send('POST', '/v1/connections/oauth/twitch/start', begun)).status).toBe(200);
    const tips = { platform: 'twitch', token: 'tip-token', label: 'Tips' };
    expect((await first.send('POST', '/v1/se-tokens', tips)).status).toBe(201);
    const automation = (await first.send('POST', '/v1/automations', { name: 'Hook' })).body.data;
    const rotate = `/v1/automations/${automation.id}/rotate-webhook-secret`;
    expect((await first.send('POST', rotate, {})).status).toBe(200);
    const raw = await eventually(async () => {
      const [event] = await first.allEvents('&user_id=4711');
      return event?.raw as object | undefined;
    }, 'the event');
    await createSubjectKeys({ db: database.db, master_keys: parseMasterKeys(OLD) }).forWriting(
      Array.from({ length: 10_000 }, (_, n) => `kick:viewer-${n}`),
    );
    expect(await lumio(OLD, 'keys', 'status')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^k1 \(writes\): 10\d\d\d subject keys/),
    });

    // Nothing that is sealed is anywhere else than where the command looks.
    const columns = await database.db.query<{ place: string; table: string; column: string }>(
      `select c.table_name || '.' || c.column_name as place, c.table_name as table, c.column_name as column
       from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
       where c.table_schema = 'public' and t.table_type = 'BASE TABLE' and c.data_type in ('text', 'character varying')`,
    );
    const sealed = new Set<string>();
    for (const { place, table, column } of columns) {
      const found = await database.db.query(`select 1 from "${table}" where "${column}" like 'v1.k1.%' limit 1`);
      if (found.length > 0) sealed.add(place);
    }
    // One column may hold more than one kind of secret, each a place of its own.
    const places = new Set(ENCRYPTED_COLUMNS.map(({ table, column }) => `${table}.${column}`));
    expect([...sealed].sort()).toEqual([...places].sort());

    const both = `${FRESH},${OLD}`;
    await serve(both);
    const rotated = async (db: Queryable = database.db) =>
      (
        await db.query<{ count: number }>("select count(*) as count from subject_keys where wrapped_key like 'v1.k2.%'")
      )[0]!.count;
    await database.db.transaction(async (tx) => {
      // It goes by their ids, and comes no further than this one.
      await tx.query(
        `select 1 from subject_keys
         where key_id = (select key_id from subject_keys order by 1 limit 1 offset 5000) for update`,
      );
      const killed = spawnLumio(['keys', 'rotate'], { ...settingsOf(data_dir), ...settings(both) });
      // Asked on the same connection, which is ended when it stands idle in a transaction.
      await until(async () => (await rotated(tx)) > 500);
      killed.kill('SIGKILL');
      await once(killed, 'exit');
    });
    const [done, status] = [await rotated(), await lumio(both, 'keys', 'status')];
    expect(done).toBeLessThan(10_000);
    expect(status).toMatchObject({ code: 1, stdout: expect.stringMatching(/^k1: \d+ subject keys/m) });

    const finished = await lumio(both, 'keys', 'rotate');
    expect(finished).toMatchObject({ code: 0, stderr: '' });
    expect(finished.stdout).toMatch(
      /^\d+ sealed anew under k2\nk2 \(writes\): .*\nk1: nothing; it may be removed from secrets\.keys\n$/,
    );

    const last = await serve(FRESH);
    const [event] = await last.allEvents('&user_id=4711');
    expect(event.raw).toEqual(raw);
    expect((await new VendorCloud(server!.base_url, server!.credentials).kickFollow(4712)).status).toBe(200);
    expect(await lumio(FRESH, 'keys', 'status')).toMatchObject({ code: 0, stdout: expect.not.stringContaining('k1') });
    expect(await lumio(OLD, 'keys', 'status')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^k1 \(writes\): nothing\nk2 \(not in secrets\.keys\): /),
    });
    expect((await lumio(FRESH, 'keys', 'rotate', '--help')).stdout).toContain('old,new');
  });
});
