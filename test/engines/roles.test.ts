import { randomBytes, randomUUID } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepDevelopmentSecrets } from '../../demo/credentials';
import { upkeep } from '../../bin/upkeep/upkeep';
import type { SecretBox } from '../../privacy/secrets/port';
import type { EventStore } from '../../engines/event-store/port';
import { silentLog } from '../support/log';
import { testDatabase, type TestDatabase } from '../support/database';
import { inTime, PATIENCE_MS, probeOf, promised, slowness } from '../support/patience';
import { Client, refused } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { type RedisServer, startRedis } from './support/redis';

const ROLES = ['api', 'ingest', 'projector', 'realtime', 'worker'] as const;
type Role = (typeof ROLES)[number];

/** Two processes of each role on one PostgreSQL and one Redis behave as one Lumio. Design §9. */
describe('roles in processes of their own', () => {
  let redis: RedisServer;
  let database: TestDatabase;
  const secrets_dir = mkdtempSync(join(tmpdir(), 'lumio-roles-'));
  const nodes = {} as Record<Role, [TestServer, TestServer]>;
  let token: string;
  let channel: string;
  const sockets: Client[] = [];

  async function start(role: Role, keys: string): Promise<TestServer> {
    const data_dir = mkdtempSync(join(tmpdir(), 'lumio-server-'));
    // Webhook secrets of development are made per data folder; here all nodes have the same, as nodes of production do.
    copyFileSync(join(secrets_dir, 'dev-secrets.json'), join(data_dir, 'dev-secrets.json'));
    const env = {
      LUMIO_ROLES: role,
      LUMIO_DATABASE__URL: database.url,
      LUMIO_DATABASE__POOL_SIZE: '4',
      LUMIO_SECRETS__KEYS: keys,
      LUMIO_REDIS__URL: redis.url,
    };
    return startServer({ data_dir, embedded: true, env });
  }

  beforeAll(async () => {
    redis = await startRedis();
    database = await testDatabase(4);
    keepDevelopmentSecrets(secrets_dir);
    const keys = `test:${randomBytes(32).toString('base64')}`;
    await Promise.all(
      ROLES.map(async (role) => {
        nodes[role] = [await start(role, keys), await start(role, keys)];
      }),
    );
    const { credentials } = nodes.api[0];
    token = credentials.access_token;
    channel = `events:${credentials.account_id}`;
  });
  afterAll(async () => {
    for (const socket of sockets) socket.end();
    await Promise.all(Object.values(nodes).flatMap((pair) => pair.map((node) => node.dispose())));
    await database?.drop();
    await redis?.stop();
    rmSync(secrets_dir, { recursive: true, force: true });
  });

  async function listen(node: TestServer, with_token = token): Promise<Client> {
    const socket = await Client.open(node.ws_url, null, { headers: { authorization: `Bearer ${with_token}` } });
    sockets.push(socket);
    // A client that says nothing for 30 s is closed; on a busy machine the tests below last longer.
    const alive = setInterval(() => socket.close_code === null && socket.send({ type: 'ping' }), 10_000);
    socket.ws.once('close', () => clearInterval(alive));
    expect((await socket.subscribe(channel)).type).toBe('subscribed');
    return socket;
  }
  const apiOf = (which: 0 | 1, with_token = token) => new ApiClient(nodes.api[which].base_url, with_token);
  const vendorsAt = (node: TestServer) => new VendorCloud(node.base_url, nodes.api[0].credentials);

  test('every node is alive, and answers 404 to the routes of roles that it does not have', async () => {
    const found: Record<string, unknown> = {};
    for (const role of ROLES) {
      const node = nodes[role][0];
      const get = async (path: string) =>
        (await fetch(node.base_url + path, { headers: { authorization: `Bearer ${token}` } })).status;
      const health = await new ApiClient(node.base_url, token).get('/v1/health');
      expect(health.body.data).toMatchObject({
        status: 'healthy',
        services: { database: { status: 'healthy' }, cache: { status: 'healthy' } },
      });
      found[role] = {
        alive: await get('/v1'),
        rest: await get('/v1/events'),
        gql: (await new ApiClient(node.base_url, token).send('POST', '/v1/gql', { query: '{ __typename }' })).status,
        webhook: (await vendorsAt(node).kickFollow(1, 'role-check')).status,
        socket:
          role === 'realtime'
            ? (await refused(`${node.ws_url}?token=nonsense`)).status
            : (await refused(`${node.ws_url}?token=${token}`)).status,
      };
    }
    const none = { alive: 200, rest: 404, gql: 404, webhook: 404, socket: 404 };
    expect(found).toEqual({
      api: { ...none, rest: 200, gql: 200 },
      ingest: { ...none, webhook: 200 },
      projector: none,
      realtime: { ...none, socket: 401 },
      worker: none,
    });
  });

  test('a webhook into one ingest node reaches a socket of the other realtime node and both api nodes', async () => {
    const [a, b] = [await listen(nodes.realtime[0]), await listen(nodes.realtime[1])];
    expect((await vendorsAt(nodes.ingest[0]).kickFollow(71)).status).toBe(200);
    const match = (message: { data?: Record<string, unknown> }) =>
      (message.data as { user_id?: unknown } | undefined) !== undefined &&
      JSON.stringify(message.data).includes('viewer_71');
    const [at_a, at_b] = await Promise.all([a.next(match, 'the event'), b.next(match, 'the event')]);
    expect(at_b.id).toBe(at_a.id);
    for (const which of [0, 1] as const) {
      expect((await apiOf(which).get(`/v1/events/${(at_b.data as unknown as { id: string }).id}`)).status).toBe(200);
    }
  });

  test('what is broadcast crosses nodes, once', async () => {
    const [a, b] = [await listen(nodes.realtime[0]), await listen(nodes.realtime[1])];
    const [from_a, from_b] = [a.messages.length, b.messages.length];
    const tested = await apiOf(0).send('POST', '/v1/events/test', { event_type: 'twitch:raid', raw: { viewers: 7 } });
    expect(tested.status).toBe(200);
    const raid = (message: { event_type?: string }) => message.event_type === 'twitch:raid';
    await Promise.all([a.next(raid, 'the raid', from_a), b.next(raid, 'the raid', from_b)]);
    a.send({ type: 'broadcast', channel, payload: '{"note":"from a"}' });
    const note = (message: object) => JSON.stringify(message).includes('from a');
    await Promise.all([a.next(note, 'the broadcast', from_a), b.next(note, 'the broadcast', from_b)]);
    // Another round trip later nothing has come twice.
    await Promise.all([a, b].map((socket) => socket.ask({ type: 'ping' }, 'pong')));
    for (const [socket, from] of [
      [a, from_a],
      [b, from_b],
    ] as const) {
      expect(socket.messages.slice(from).filter(raid)).toHaveLength(1);
      expect(socket.messages.slice(from).filter(note)).toHaveLength(1);
    }
  });

  test('rate limits are counted together', async () => {
    const other = nodes.api[0].credentials.other.access_token;
    const left: number[] = [];
    for (let i = 0; i < 6; i += 1) {
      const { headers } = await apiOf((i % 2) as 0 | 1, other).send('GET', '/v1/events', undefined);
      left.push(Number(headers.get('ratelimit-remaining')));
    }
    expect(left).toEqual([0, 1, 2, 3, 4, 5].map((i) => left[0]! - i));
  });

  test('an api node without a projector shows what was just written, and does not say it lags', async () => {
    for (let i = 0; i < 5; i += 1) {
      const made = await apiOf(0).send('POST', '/v1/api-keys', { label: `k${i}`, permissions: ['events:read'] });
      expect(made.status).toBe(201);
      expect(made.headers.get('x-lumio-read-model')).toBeNull();
      const { body } = await apiOf(1).get('/v1/api-keys');
      expect(body.data.map((key: { id: string }) => key.id)).toContain(made.body.data.id);
    }
  });

  test('a key revoked on one node is dead on the other within a second, and its sockets within five', async () => {
    const made = await apiOf(0).send('POST', '/v1/api-keys', { label: 'short', permissions: ['events:read'] });
    const { key, id } = made.body.data;
    const holder = apiOf(1, key);
    expect((await holder.get('/v1/events')).status).toBe(200);
    const socket = await listen(nodes.realtime[1], key);
    expect((await apiOf(0).send('DELETE', `/v1/api-keys/${id}`, undefined)).status).toBe(204);
    const refused = async () => (await holder.get('/v1/events')).status === 401 || undefined;
    await promised(refused, 'the 401', 1_000, probeOf(holder));
    expect(await inTime(socket.closed(), nodes.realtime[1])).toBe(4401);
  });

  test('upkeep is done by one of the workers', async () => {
    const log = silentLog;
    const jobs = { trim: async () => 0 };
    const blobs = { delete: async () => undefined };
    const subject_keys = { expire: async () => 0 };
    const live = { broadcast: async () => undefined };
    const events = {} as EventStore;
    const parts = {
      db: database.db,
      secrets: {} as SecretBox,
      events,
      subject_keys,
      jobs,
      blobs,
      live,
      bots: { ids: [], logins: [] },
      grace_ms: 0,
      sessions_ms: 15_000,
      log,
    };
    const names = upkeep(parts).map(({ name }) => name);
    const done = await eventually(async () => {
      const rows = await database.db.query<{ name: string }>(
        `select split_part(key, '/', 1) as name from finished_jobs where split_part(key, '/', 1) = any($1)`,
        [names],
      );
      return new Set(rows.map(({ name }) => name)).size === names.length ? rows : undefined;
    }, 'all upkeep to be done');
    expect(done.filter(({ name }) => name.endsWith('-partitions'))).toHaveLength(3);
    await eventually(async () => {
      const holders = await database.db.query('select 1 from job_holders');
      return holders.length === 2 || undefined;
    }, 'both workers to hold jobs');
    const [partitions] = await database.db.query(
      `select count(*) as n from pg_class where relname like 'platform_event_logs_%' and relkind = 'r'`,
    );
    expect(partitions!.n).toBeGreaterThanOrEqual(3);
  });

  test('without Redis everything stored still goes everywhere; with it again, so does what is broadcast', async () => {
    const socket = await listen(nodes.realtime[1]);
    const health = async () => (await apiOf(0).get('/v1/health')).body.data;
    await redis.kill();
    const degraded = await eventually(async () => {
      const data = await health();
      return data.status === 'degraded' ? data : undefined;
    }, 'the health to say so');
    expect(degraded.services).toMatchObject({ cache: { status: 'unhealthy' }, database: { status: 'healthy' } });
    const from = socket.messages.length;
    expect((await vendorsAt(nodes.ingest[0]).kickFollow(72)).status).toBe(200);
    await socket.next((message) => JSON.stringify(message).includes('viewer_72'), 'the event', from);
    const asked_at = performance.now();
    expect((await apiOf(1).get('/v1/events')).status).toBe(200);
    expect(performance.now() - asked_at).toBeLessThan(2_000 * slowness());
    await redis.start();
    await eventually(async () => ((await health()).status === 'healthy' ? true : undefined), 'the health');
    await eventually(async () => {
      await apiOf(0).send('POST', '/v1/events/test', { event_type: 'twitch:raid', raw: { viewers: 8 } });
      return socket.messages.slice(from).some(({ event_type }) => event_type === 'twitch:raid') ? true : undefined;
    }, 'a broadcast to cross again');
  });

  test('SIGKILL of one node of each role during a flood: nothing is lost, nothing comes twice', async () => {
    const socket = await listen(nodes.realtime[1]);
    const from = socket.messages.length;
    const total = 400;
    let next = 0;
    let accepted = 0;
    const flood = Promise.all(
      Array.from({ length: 6 }, async () => {
        while (next < total) {
          const n = (next += 1);
          const message_id = randomUUID();
          // A vendor sends a delivery again, under its id, until it is answered 200.
          for (let attempt = 0; ; attempt += 1) {
            const posted = await vendorsAt(nodes.ingest[attempt === 0 ? n % 2 : 1]!)
              .kickFollow(10_000 + n, message_id)
              .catch(() => undefined);
            if (posted?.status === 200) break;
            if (attempt > 200) throw new Error(`delivery ${n} is never accepted`);
            await new Promise((resolve) => setTimeout(resolve, 50));
          }
          accepted += 1;
        }
      }),
    );
    const room = `presence:${channel}`;
    const watcher = await listen(nodes.realtime[1]);
    await watcher.subscribe(room);
    const passing = await listen(nodes.realtime[0]);
    await passing.subscribe(room);
    const id = passing.messages[0]!.session_id!;
    const seen = (event_type: string) => (message: { event_type?: string; data?: object }) =>
      message.event_type === event_type && JSON.stringify(message.data).includes(id);
    await watcher.next(seen('presence:join'), 'the join of a connection on the other node');
    const stages: Role[] = ['projector', 'ingest', 'realtime', 'api', 'worker'];
    for (const [i, role] of stages.entries()) {
      await eventually(async () => (accepted >= ((i + 1) * total) / 7 ? true : undefined), 'the flood to go on');
      await nodes[role][0].kill();
    }
    await flood;
    const users = (events: { type?: string; event_type?: string; raw?: any }[]) =>
      events.map((event) => Number(event.raw?.follower?.user_id)).filter((id) => id > 10_000);
    const stored = await eventually(
      async () => {
        const ids = users(await apiOf(1).allEvents('&types=kick:follower'));
        return new Set(ids).size >= total ? ids : undefined;
      },
      'all events to be stored',
      2 * PATIENCE_MS,
    );
    const expected = Array.from({ length: total }, (_, i) => 10_001 + i);
    expect(stored.sort((a, b) => a - b)).toEqual(expected);
    const live = () => users(socket.messages.slice(from).map((message) => ({ raw: message.data?.payload })));
    await socket.until(() => live().length >= total, 'all events on the socket');
    expect(live().sort((a, b) => a - b)).toEqual(expected);
    await eventually(
      async () => ((await database.db.query('select 1 from job_holders')).length === 1 ? true : undefined),
      'the killed worker to be taken for dead',
      2 * PATIENCE_MS,
    );
    await database.db.query(`select graphile_worker.add_job('finished-jobs', job_key := 'finished-jobs/by-hand')`);
    await eventually(
      async () => (await database.db.query(`select 1 from finished_jobs where key = 'finished-jobs/by-hand'`))[0],
      'the other worker to go on',
    );
    const left = () => watcher.messages.some(seen('presence:leave'));
    await watcher.until(left, 'connections of the killed node to leave', 2 * PATIENCE_MS);
  }, 480_000);
});
