import { slowness } from '../support/patience';
import { Client, type ServerMessage } from '../support/realtime';
import { ApiClient } from '../support/vendor-cloud';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, sleep, until } from './support/dose';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { type RedisServer, startRedis } from './support/redis';
import { type Link, startToxiproxy, type Toxiproxy } from './support/toxiproxy';
import { Traffic } from './support/traffic';

/** Row 14: two nodes with one Redis between them, and Redis fails in every way. */
describe('Redis fails', () => {
  let cluster: Cluster;
  let redis: RedisServer;
  let proxy: Toxiproxy;
  let link: Link;
  let a: Lumio;
  let b: Lumio;
  let traffic: Traffic;
  let socket: Client;
  let channel: string;
  /** Present on the node that is never killed. */
  let watcher: Client;
  let presence: string;
  let alive: NodeJS.Timeout;

  beforeAll(async () => {
    cluster = await startCluster();
    redis = await startRedis();
    proxy = await startToxiproxy();
    link = await proxy.link(`127.0.0.1:${redis.port}`);
    const database_url = await cluster.createDatabase();
    const env = {
      LUMIO_REDIS__URL: `redis://127.0.0.1:${link.port}`,
      LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 9).toString('base64')}`,
    };
    a = await Lumio.start({ database_url, env });
    b = await Lumio.start({ database_url, env });
    channel = `events:${a.credentials.account_id}`;
    socket = await Client.open(b.ws_url, b.credentials.access_token);
    expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    presence = `presence:${channel}`;
    watcher = await present(a);
    // A client that says nothing for 30 s is closed.
    alive = setInterval(() => [socket, watcher].forEach((client) => client.send({ type: 'ping' })), 10_000);
    traffic = new Traffic(a, { seed: SEED, name: 'redis', pause_ms: 20 }).start();
  });
  afterAll(async () => {
    clearInterval(alive);
    for (const client of [socket, watcher]) client?.end();
    await b?.dispose();
    await a?.dispose();
    await proxy?.stop();
    await redis?.dispose();
    await cluster?.dispose();
  });

  /** One who left while Redis was away comes back, and gets all that is stored since. */
  async function comesBack(): Promise<void> {
    const client = await Client.open(b.ws_url, b.credentials.access_token);
    const answer = await client.subscribe(channel, stored()[0]!.id);
    expect(answer).toMatchObject({ type: 'subscribed', recovered: true });
    const { length } = stored();
    await client.until(
      () => client.messages.filter(({ id, type }) => type === 'event' && id).length >= length - 1,
      'all',
    );
    client.end();
    // Messages of another epoch cannot be had: it is told so.
    const stranger = await Client.open(b.ws_url, b.credentials.access_token);
    expect(await stranger.subscribe(channel, '000000000000-1')).toMatchObject({ recovered: false });
    stranger.end();
  }

  const idOf = (client: Client) => client.messages[0]!.session_id!;
  async function present(node: Lumio): Promise<Client> {
    const client = await Client.open(node.ws_url, node.credentials.access_token);
    expect(await client.subscribe(presence)).toMatchObject({ type: 'subscribed' });
    return client;
  }

  /** Who comes on either node is seen by both, and who goes is not. */
  async function presenceIsWhole(): Promise<void> {
    const [near, far] = [await present(a), await present(b)];
    const ids = [watcher, near, far].map(idOf).sort();
    await until(async () => {
      const looking = await present(b);
      await looking.next(({ event_type }) => event_type === 'presence:bootstrap', 'the list');
      const { data } = looking.messages.find(({ event_type }) => event_type === 'presence:bootstrap')!;
      const there = (data!.connections as { connection_id: string }[]).map(({ connection_id }) => connection_id);
      const own = idOf(looking);
      looking.end();
      return JSON.stringify(there.filter((id) => id !== own).sort()) === JSON.stringify(ids);
    }, 'the presence of both nodes');
    near.end();
    far.end();
  }

  /** What the client got and the log holds; messages that are not stored have no id. */
  const stored = () => socket.messages.filter(({ type, id }) => type === 'event' && id !== undefined);

  /** A test event is never stored: it reaches the other node's client through Redis alone. */
  async function broadcastArrives(): Promise<void> {
    // A system key has no limit; the traffic uses up what the user's session may do.
    const api = new ApiClient(a.base_url, a.credentials.system_key);
    const account = { 'x-lumio-account': a.credentials.account_id };
    const from = socket.messages.length;
    await until(async () => {
      const message = { event_type: 'twitch:raid', raw: { viewers: 7 } };
      expect((await api.send('POST', '/v1/events/test', message, account)).status).toBe(200);
      await sleep(200);
      return socket.messages.slice(from).some((message) => message.event_type === 'twitch:raid');
    }, 'a broadcast on the other node');
  }

  test.each<[string, () => Promise<void>, () => Promise<void>]>([
    ['killed', () => redis.kill(), () => redis.start()],
    ['flushed', () => redis.flush(), async () => undefined],
    ['paused', async () => redis.pause(), async () => redis.resume()],
    ['half-open', () => link.silence(), () => link.mend()],
    ['cut', () => link.cut(), () => link.mend()],
  ])(
    'row 14: %s: stored events go on reaching clients of every node, and broadcasts come back with it',
    async (_how, fail, mend) => {
      await broadcastArrives();
      await fail();
      const [acked, received] = [traffic.acked, stored().length];
      const moment = Date.now();
      await sleep(dose(5000, 600_000));
      // Nothing stored waits for Redis: webhooks are answered, and arrive at the client of the other node meanwhile.
      await until(() => traffic.acked > acked + 50, 'webhooks without Redis');
      await until(() => stored().length > received + 50, 'their events at the other node');
      expect(traffic.p99Since(moment)).toBeLessThan(3000 * slowness());
      const api = new ApiClient(a.base_url, a.credentials.user_api_key);
      expect((await api.get('/v1/events?limit=1')).status).toBe(200);
      await comesBack();
      await mend();
      await broadcastArrives();
      await presenceIsWhole();
    },
  );

  test('row 14: what the client got over all of it is the log, without a hole and without a double', async () => {
    await broadcastArrives();
    await redis.kill();
    const acked = traffic.acked;
    await until(() => traffic.acked > acked + 50, 'webhooks without Redis');
    await redis.start();
    await broadcastArrives();
    const sent = await traffic.stop();
    await checkInvariant(a, sent);
    const [head] = await a.query('select seq::int as seq from channel_heads where channel = $1', [channel]);
    const seqOf = (id: string) => Number(id.slice(id.lastIndexOf('-') + 1));
    await until(() => seqOf(stored().at(-1)!.id!) === head.seq, 'the newest stored event');
    const seqs = stored().map(({ id }) => seqOf(id!));
    expect(seqs).toEqual(seqs.map((_, at) => seqs[0]! + at));
    expect([a.ends, b.ends]).toEqual([[], []]);
  });

  test('row 14: clients of a node that is killed leave the presence of the others', async () => {
    const leaving = await present(b);
    const told = (event_type: string) => (message: ServerMessage) =>
      message.event_type === event_type && String(message.data!.connection_id) === idOf(leaving);
    await watcher.next(told('presence:join'), 'the join');
    await b.kill();
    await watcher.until(() => watcher.messages.some(told('presence:leave')), 'the leave');
    expect(watcher.messages.filter(told('presence:leave'))).toHaveLength(1);
    await b.start();
    await presenceIsWhole();
  });
});
