import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import pg from 'pg';
import { createKurrentEventStore } from '../../engines/event-store/kurrentdb/store';
import { memberOf } from '../support/removed-member';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { type Kurrent, startKurrent } from './support/kurrentdb';

const DIST = join(__dirname, '../../dist');

/**
 * The whole server with its domain events in KurrentDB: in two test nodes in a process of their own, or in the real one
 * that KURRENTDB_URL names.
 */
describe(`Lumio on KurrentDB (${process.env['KURRENTDB_URL'] ? 'a real server' : 'two test nodes'})`, () => {
  let kurrent: Kurrent | undefined;
  let url: string;
  let env: Record<string, string>;
  let server: TestServer;
  let api: ApiClient;

  beforeAll(async () => {
    if (!process.env['KURRENTDB_URL']) kurrent = await startKurrent();
    url = process.env['KURRENTDB_URL'] ?? kurrent!.url;
    env = { LUMIO_EVENT_STORE__URL: url, LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}` };
    server = await startServer({ env });
    api = new ApiClient(server.base_url, server.credentials.access_token);
  });
  afterAll(async () => {
    await server?.dispose();
    kurrent?.stop();
  });

  const stored = (query: string) => server.database!.db.query(query);
  const newKey = (label: string) =>
    api.send('POST', '/v1/api-keys', { label, permissions: ['events:read'], expires_at: null });

  test('the demo data came by way of it: nothing is in the Postgres log, and the checkpoints name this store', async () => {
    const me = await api.get('/v1/tokens/me');
    expect(me.status).toBe(200);
    expect(await stored('select 1 from domain_events')).toEqual([]);
    // A projection whose first batch is yet to come has a checkpoint without a position.
    const checkpoints = await eventually(async () => {
      const rows = await stored("select engine, position from checkpoints where source = 'domain-events'");
      return rows.length > 0 && rows.every(({ position }) => position !== '') ? rows : undefined;
    }, 'the checkpoints');
    for (const { engine, position } of checkpoints) {
      expect(engine).toMatch(/^kurrentdb:[0-9a-f-]{36}$/);
      expect(position).toMatch(/^\d+\/\d+$/);
    }
  });

  test('an API key is created, listed at once, used, and dead at once when revoked', async () => {
    const made = await newKey('Bot');
    expect(made.status).toBe(201);
    const { key, ...api_key } = made.body.data;
    const listed = await api.get('/v1/api-keys');
    expect(listed.body.data.find((one: { id: string }) => one.id === api_key.id)).toEqual(api_key);
    const bot = new ApiClient(server.base_url, key);
    expect((await bot.get('/v1/tokens/me')).body.data.permissions).toEqual(['events:read']);
    expect((await api.send('DELETE', `/v1/api-keys/${api_key.id}`, undefined)).status).toBe(204);
    expect((await bot.get('/v1/tokens/me')).status).toBe(401);
  });

  test('a removed member’s keys die at once and by events, each once, also through a kill', async () => {
    const store = await createKurrentEventStore({ url });
    try {
      const member = await memberOf(server, store);
      await member.join();
      const key = await member.createKey();
      await eventually(async () => ((await key.bot.get('/v1/events')).status === 200 ? true : undefined), 'the key');
      const holder = new pg.Client({ connectionString: server.database!.url });
      await holder.connect();
      // Its checkpoint cannot move: the command is issued, and nothing after it is stored.
      await holder.query(`begin; select from checkpoints where projection = 'reactor:api-keys' for update`);
      const removal = await member.leave();
      await eventually(async () => ((await key.bot.get('/v1/events')).status === 401 ? true : undefined), 'its end');
      const story = () => member.story(key.key_id);
      await eventually(async () => ((await story()).length === 2 ? true : undefined), 'the revocation');
      await server.kill();
      await holder.query('rollback');
      await holder.end();
      await member.join();
      const fresh = await member.createKey();
      server = await server.restart();
      api = new ApiClient(server.base_url, server.credentials.access_token);
      const query = 'select key_id from member_keys where user_id = $1';
      await eventually(async () => {
        const rows = await server.database!.db.query(query, [server.credentials.other.user_id]);
        return rows.length === 1 && rows[0]!.key_id === fresh.key_id ? true : undefined;
      }, 'it to catch up');
      expect((await story()).map(({ type }) => type)).toEqual(['api_key:created', 'api_key:revoked']);
      expect((await story())[1]!.metadata).toMatchObject({ actor_id: 'api-keys', causation_id: removal.id });
      expect((await member.story(fresh.key_id)).map(({ type }) => type)).toEqual(['api_key:created']);
    } finally {
      await store.close();
    }
  });

  test('an Idempotency-Key replays its answer', async () => {
    const body = { label: 'Once', permissions: ['events:read'], expires_at: null };
    const headers = { 'idempotency-key': 'kurrent-1' };
    const first = await api.send('POST', '/v1/api-keys', body, headers);
    const again = await api.send('POST', '/v1/api-keys', body, headers);
    expect(first.status).toBe(201);
    expect(again.body).toEqual(first.body);
    const { body: list } = await api.get('/v1/api-keys');
    expect(list.data.filter(({ label }: { label: string }) => label === 'Once')).toHaveLength(1);
  });

  test('a webhook becomes an event', async () => {
    const vendors = new VendorCloud(server.base_url, server.credentials);
    expect((await vendors.kickFollow(4711)).status).toBe(200);
    const [event] = await eventually(async () => {
      const events = await api.allEvents('&types=kick:follower&user_id=4711');
      return events.length > 0 ? events : undefined;
    }, 'the event');
    expect(event).toMatchObject({ type: 'kick:follower', platform: 'kick' });
  });

  test('the lead moves to the other node and back: commands and read models go on', async () => {
    const labels: string[] = [];
    for (const round of [1, 2, 3, 4]) {
      // A real server's cluster is its operator's to move.
      if (round % 2 === 0) kurrent?.elect();
      labels.push(`Moved ${round}`);
      expect((await newKey(`Moved ${round}`)).status).toBe(201);
    }
    const listed = (await api.get('/v1/api-keys')).body.data.map(({ label }: { label: string }) => label);
    expect(listed.filter((label: string) => label.startsWith('Moved')).sort()).toEqual(labels);
  });

  test('after a kill and a restart it goes on where it was', async () => {
    const before = (await newKey('Before')).body.data;
    const { id } = before;
    await server.kill();
    server = await server.restart();
    api = new ApiClient(server.base_url, server.credentials.access_token);
    expect((await new ApiClient(server.base_url, before.key).get('/v1/tokens/me')).status).toBe(200);
    expect((await api.send('DELETE', `/v1/api-keys/${id}`, undefined)).status).toBe(204);
    const after = (await newKey('After')).body.data;
    const listed = (await api.get('/v1/api-keys')).body.data.map((one: { id: string }) => one.id);
    expect(listed).toContain(after.id);
    expect(listed).not.toContain(id);
    expect(await stored('select 1 from domain_events')).toEqual([]);
    expect(await stored("select 1 from dead_letters where source = 'domain-events'")).toEqual([]);
  });

  test('a read model of domain events is rebuilt from it, while the server runs', async () => {
    const rows = 'select id, label from api_keys order by id';
    const before = await stored(rows);
    expect(before.length).toBeGreaterThan(0);
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('LUMIO_'));
    const cli = spawn(process.execPath, [join(DIST, 'bin/main.js'), 'rebuild', 'api-keys'], {
      env: {
        ...Object.fromEntries(inherited),
        ...env,
        LUMIO_DATA_DIR: server.data_dir,
        LUMIO_DATABASE__URL: server.database!.url,
      },
    });
    let said = '';
    for (const stream of [cli.stdout, cli.stderr]) stream.on('data', (chunk) => (said += chunk));
    const [code] = (await once(cli, 'exit')) as [number | null];
    expect([code, said]).toEqual([0, expect.any(String)]);
    expect(await stored(rows)).toEqual(before);
    expect((await newKey('After the rebuild')).status).toBe(201);
    expect(await stored(rows)).toHaveLength(before.length + 1);
  });

  test.each([
    ['mysql://x', /LUMIO_EVENT_STORE__URL: must be postgres, or the connection string of a KurrentDB/],
    ['kurrentdb://?', /LUMIO_EVENT_STORE__URL: not a KurrentDB connection string/],
  ])('%s stops the start with one line', async (bad, line) => {
    const error = await startServer({ env: { LUMIO_EVENT_STORE__URL: bad } }).then(
      async (started) => {
        await started.dispose();
        return new Error('it started');
      },
      (failure: Error) => failure,
    );
    expect(error.message).toMatch(line);
    expect(error.message).not.toMatch(/\n\s+at /);
  });
});
