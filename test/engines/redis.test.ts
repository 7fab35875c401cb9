import Redis from 'ioredis';
import { randomUUID } from 'node:crypto';
import { createRedisCache } from '../../engines/cache/redis';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createRedisPresence } from '../../engines/presence/redis';
import { createRedisRateLimits } from '../../engines/rate-limits/redis';
import { connectRedis } from '../../engines/redis/connection';
import { createRedisEngines, type SharedEngines } from '../../engines/redis/shared';
import { createRedisSlots } from '../../engines/slots/redis';
import { silentLog as log } from '../support/log';
import { PATIENCE_MS, slowness } from '../support/patience';
import { freePort } from './support/process';
import { type Faults, faultsOf, type RedisServer, startRedis } from './support/redis';
import { type ProxyLink, startToxiproxy, type Toxiproxy } from './support/toxiproxy';

let redis: RedisServer;
let toxiproxy: Toxiproxy;
let proxied: ProxyLink;
let link: Faults;
beforeAll(async () => {
  redis = await startRedis();
  toxiproxy = await startToxiproxy();
  proxied = await toxiproxy.link(redis.port);
  link = faultsOf(proxied);
});
afterAll(async () => {
  await toxiproxy.stop();
  await redis.stop();
});

/** A test that failed midway leaves its fault to nobody. */
afterEach(async () => {
  redis.resume();
  await link.heal();
});

const metrics = () => createPrometheusMetrics({});
const open = (url: string, installation: string, m = metrics()) =>
  createRedisEngines({ url, installation, log, metrics: m });

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
const value = async (m: ReturnType<typeof metrics>, name: string): Promise<number> => {
  const line = (await m.render()).split('\n').find((text) => text.startsWith(name) && !text.startsWith('#'));
  return Number(line?.split(' ').at(-1) ?? 0);
};
async function timed<T>(work: Promise<T>): Promise<{ ms: number; result: T }> {
  const start = performance.now();
  const result = await work;
  return { ms: performance.now() - start, result };
}

/** Two nodes: `near` may be cut off by the faulty link, `far` only by what happens to the server. */
async function nodes() {
  const installation = randomUUID();
  const near_metrics = metrics();
  const near = await open(`redis://127.0.0.1:${proxied.port}`, installation, near_metrics);
  const far = await open(redis.url, installation);
  const heard = { near: [] as string[], far: [] as string[] };
  near.relay.subscribe('live', (message) => heard.near.push(message));
  far.relay.subscribe('live', (message) => heard.far.push(message));
  let marks = 0;
  /** Publishes until each node hears the other. */
  const joined = async () => {
    const [from_near, from_far] = [heard.near.length, heard.far.length];
    await until(async () => {
      marks += 1;
      await near.relay.publish('live', `mark near ${marks}`);
      await far.relay.publish('live', `mark far ${marks}`);
      return (
        heard.near.slice(from_near).some((text) => text.startsWith('mark far')) &&
        heard.far.slice(from_far).some((text) => text.startsWith('mark near'))
      );
    }, 'both nodes to hear each other');
  };
  await joined();
  return {
    near,
    far,
    near_metrics,
    heard,
    joined,
    close: async () => {
      await near.close();
      await far.close();
    },
  };
}

/**
 * Everything of one node while Redis is away: no wait, no throw, local subscribers hear all, others' loss is counted.
 */
async function expectAlone(node: SharedEngines, heard: string[], m: ReturnType<typeof metrics>): Promise<void> {
  const lost_before = await value(m, 'lumio_relay_lost_total');
  const round = randomUUID();
  const sent = Array.from({ length: 20 }, (_, i) => `${round} ${i}`);
  const mine = () => heard.filter((text) => text.startsWith(round));
  await Promise.all(sent.map((text) => node.relay.publish('live', text)));
  await until(() => mine().length >= 20, 'local delivery');
  expect(mine()).toEqual(sent);
  expect((await value(m, 'lumio_relay_lost_total')) - lost_before).toBe(20);
  const bucket = randomUUID();
  const waits: number[] = [];
  for (let i = 0; i < 12; i += 1) {
    const { ms, result } = await timed(node.rate_limits.take(bucket, 1, 10));
    waits.push(ms);
    expect(result.allowed).toBe(i < 10);
  }
  // 100 ms for one that finds Redis silent.
  const limit_ms = 400 * slowness();
  expect(Math.max(...waits)).toBeLessThan(limit_ms);
  expect([...waits].sort((a, b) => a - b)[6]!).toBeLessThan(30 * slowness());
  const read = await timed(node.cache.get('k'));
  expect(read.result).toBeUndefined();
  expect(read.ms).toBeLessThan(limit_ms);
  expect(await node.cache.ping()).toBe(false);
}

test('a server that is killed: nodes go on alone, and find each other again by themselves', async () => {
  const pairing = await nodes();
  const { near, far, heard, near_metrics } = pairing;
  await near.cache.set('k', 'v', 60);
  await near.presence.join('p', { id: 's1', info: '1' });
  await far.presence.join('p', { id: 's2', info: '2' });
  await redis.kill();
  await expectAlone(near, heard.near, near_metrics);
  expect(await near.presence.list('p')).toEqual([{ id: 's1', info: '1' }]);
  await far.presence.leave('p', 's2');
  await far.presence.join('p', { id: 's3', info: '3' });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await redis.start();
  await pairing.joined();
  await until(() => near.cache.ping(), 'the cache');
  // What the server forgot its nodes tell again; who left meanwhile is gone.
  const both = JSON.stringify(['s1', 's3']);
  await until(
    async () => JSON.stringify((await near.presence.list('p')).map(({ id }) => id)) === both,
    'presence of both nodes',
  );
  expect((await far.presence.list('p')).map(({ id }) => id)).toEqual(['s1', 's3']);
  expect(await near.rate_limits.take('after', 1, 10)).toMatchObject({ remaining: 9 });
  expect(await far.rate_limits.take('after', 1, 10)).toMatchObject({ remaining: 8 });
  await pairing.close();
});

test('a unit of the limiter is one round trip', async () => {
  const engines = await open(redis.url, randomUUID());
  const client = new Redis(redis.url);
  const calls = async (command: string) =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await client.info('commandstats'))?.[1] ?? 0);
  const sent = async () => ({ evalsha: await calls('evalsha'), eval: await calls('eval'), exec: await calls('exec') });
  await engines.rate_limits.take('warm', 1, 100);
  const before = await sent();
  for (let n = 0; n < 20; n += 1) await engines.rate_limits.take(`bucket-${n}`, 1, 100);
  expect(await sent()).toEqual({ ...before, evalsha: before.evalsha + 20 });
  client.disconnect();
  await engines.close();
});

test('a flush costs cached values and windows, and nothing else', async () => {
  const pairing = await nodes();
  const { near, far } = pairing;
  await near.presence.join('p', { id: 's1', info: '1' });
  await near.cache.set('k', 'v', 60);
  await near.rate_limits.take('b', 1, 10);
  await redis.flush();
  expect(await far.cache.get('k')).toBeUndefined();
  expect(await far.rate_limits.take('b', 1, 10)).toMatchObject({ remaining: 9 });
  await pairing.joined();
  await until(async () => (await far.presence.list('p')).length === 1, 'presence told again');
  await pairing.close();
});

test('a server that is paused: commands end, and the links are good again when it goes on', async () => {
  const pairing = await nodes();
  redis.pause();
  await expectAlone(pairing.near, pairing.heard.near, pairing.near_metrics);
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await expectAlone(pairing.near, pairing.heard.near, pairing.near_metrics);
  redis.resume();
  await pairing.joined();
  await until(() => pairing.near.cache.ping(), 'the cache');
  await pairing.close();
});

test('an invalidation that Redis did not take is made up for when it is back', async () => {
  const pairing = await nodes();
  const { near, far } = pairing;
  await near.cache.set('gone', 'old', 600);
  await near.cache.set('kept', 'v', 600);
  await link.blackhole();
  await near.cache.delete('gone');
  expect(await near.cache.get('gone')).toBeUndefined();
  await link.heal();
  await until(async () => (await far.cache.get('gone')) === undefined, 'the invalidation');
  await until(async () => (await near.cache.get('kept')) === 'v', 'the other value');
  await pairing.close();
});

test('half-open for 20 s: found, lived with, and mended without a hand, the idle subscriber link as well', async () => {
  const pairing = await nodes();
  const { near, far, heard, near_metrics } = pairing;
  await link.blackhole();
  const until_ms = Date.now() + 20_000;
  await expectAlone(near, heard.near, near_metrics);
  let slowest = 0;
  let slow_publishes = 0;
  const slow_ms = 300 * slowness();
  while (Date.now() < until_ms) {
    slowest = Math.max(slowest, (await timed(near.rate_limits.take('half-open', 1, 1_000))).ms);
    if ((await timed(near.relay.publish('live', 'x'))).ms > slow_ms) slow_publishes += 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(slowest).toBeLessThan(400 * slowness());
  expect(slow_publishes).toBeLessThanOrEqual(3);
  expect(await value(near_metrics, 'lumio_redis_connected')).toBe(0);
  await link.heal();
  await pairing.joined();
  await until(() => near.cache.ping(), 'the cache');
  const from = heard.near.length;
  await far.relay.publish('live', 'after');
  await until(() => heard.near.slice(from).includes('after'), 'the far message');
  await pairing.close();
});

test('a link to a server that never answers is noticed although nobody publishes', async () => {
  const m = metrics();
  const subscriber = connectRedis({
    url: `redis://127.0.0.1:${proxied.port}`,
    name: 'idle',
    log,
    metrics: m,
    ping_ms: 200,
    silent_ms: 500,
  });
  await subscriber.opened(PATIENCE_MS);
  await subscriber.client.subscribe('quiet');
  let lost = false;
  let again = 0;
  subscriber.onLost(() => (lost = true));
  subscriber.onReady(() => (again += 1));
  await link.blackhole();
  await until(() => lost, 'the loss to be seen');
  await link.heal();
  await until(() => again > 0, 'the new connection');
  await subscriber.close();
});

test('who subscribes while the server is slow or silent is heard as soon as it answers, and waits for a moment only', async () => {
  const pairing = await nodes();
  const { near, far } = pairing;
  const got: string[] = [];
  const subscribe = (topic: string) => void near.relay.subscribe(topic, (message) => got.push(message));
  await link.delay(30);
  subscribe('slow');
  await until(() => near.relay.heard('slow'), 'the acknowledgement');
  await far.relay.publish('slow', 'of the slow');
  await until(() => got.includes('of the slow'), 'the message over the slow link');
  await link.heal();
  await pairing.joined();

  redis.pause();
  subscribe('silent');
  const { ms, result } = await timed(near.relay.heard('silent'));
  expect([result, ms < 10_000]).toEqual([false, true]);
  redis.resume();
  await until(() => near.relay.heard('silent'), 'the topic to be heard');
  await far.relay.publish('silent', 'of the silent');
  await until(() => got.includes('of the silent'), 'the message after the silence');
  await pairing.close();
});

test('a connection that breaks while it is asked whether it lives is not asked on', async () => {
  const own = connectRedis({ url: `redis://127.0.0.1:${proxied.port}`, name: 'asked', log, metrics: metrics() });
  await own.opened(PATIENCE_MS);
  let pings = 0;
  const ping = own.client.ping.bind(own.client) as () => Promise<'PONG'>;
  own.client.ping = () => {
    pings += 1;
    return ping();
  };
  await link.blackhole();
  await expect(own.client.get('k')).rejects.toThrow('timed out');
  await until(() => pings > 0, 'the first ping');
  // Ends the connections that were swallowed.
  await link.heal();
  await until(() => own.usable(), 'the new connection');
  expect(pings).toBeLessThan(50);
  await own.close();
});

test('a slow server is not an absent one', async () => {
  const pairing = await nodes();
  await link.delay(15);
  for (let i = 0; i < 5; i += 1) {
    const { remaining } = await pairing.near.rate_limits.take('slow', 1, 10);
    expect(remaining).toBe(9 - i);
  }
  expect(await pairing.far.rate_limits.take('slow', 1, 10)).toMatchObject({ remaining: 4 });
  await link.heal();
  await pairing.close();
});

test('a node that dies takes its presence with it', async () => {
  const prefix = `test:${randomUUID()}:`;
  const linkOf = (name: string) => connectRedis({ url: redis.url, name, log, metrics: metrics() });
  const [one, two] = [linkOf('one'), linkOf('two')];
  await Promise.all([one.opened(PATIENCE_MS), two.opened(PATIENCE_MS)]);
  const dying = createRedisPresence({ link: one, prefix, log, node_ttl_ms: 2_500 });
  const living = createRedisPresence({ link: two, prefix, log, node_ttl_ms: 2_500 });
  await dying.join('p', { id: 's1', info: '1' });
  await living.join('p', { id: 's2', info: '2' });
  await until(async () => (await living.list('p')).length === 2, 'both');
  await one.close(); // nothing of it is heard any more
  await until(async () => (await living.list('p')).length === 1, 'the dead node to be forgotten');
  expect(await living.list('p')).toEqual([{ id: 's2', info: '2' }]);
  await until(async () => (await two.client.hlen(`${prefix}presence:p`)) === 1, 'its fields to be removed');
  await living.close();
  await two.close();
});

test('slots: of a node that dies they are free, a server that forgot is told, and without one each node counts', async () => {
  const prefix = `test:${randomUUID()}:`;
  const linkOf = (name: string, port = redis.port) =>
    connectRedis({ url: `redis://127.0.0.1:${port}`, name, log, metrics: metrics() });
  const [one, two] = [linkOf('one', proxied.port), linkOf('two')];
  await Promise.all([one.opened(PATIENCE_MS), two.opened(PATIENCE_MS)]);
  const [near, far] = [one, two].map((on) => createRedisSlots({ link: on, prefix, log, node_ttl_ms: 2_500 }));
  const free = async (slots: typeof near, limit: number) => {
    if (!(await slots!.take('b', limit))) return false;
    slots!.giveBack('b');
    return true;
  };
  for (let n = 0; n < 3; n += 1) await near!.take('b', 10);
  await far!.take('b', 10);
  expect([await free(far, 4), await free(far, 5)]).toEqual([false, true]);
  await redis.flush();
  await until(async () => !(await free(far, 4)), 'the counts to be told again');

  await link.blackhole();
  // Alone it counts its own; what it counted meanwhile is told when the link is mended.
  await until(() => !one.usable(), 'the silence to be noticed');
  expect([await near!.take('b', 4), await near!.take('b', 4)]).toEqual([true, false]);
  near!.giveBack('b');
  near!.giveBack('b');
  await until(async () => (await two.client.keys(`${prefix}node:*`)).length === 1, 'its key to expire');
  expect(await free(far, 2)).toBe(true);
  await link.heal();
  await until(async () => !(await free(far, 3)) && (await free(far, 4)), 'two and one to be held');

  await one.close(); // nothing of it is heard any more
  await until(() => free(far, 2), 'the slots of the dead node to be free');
  await far!.close();
  await two.close();
});

test('installations on one server do not see each other, and a start without a server goes on', async () => {
  const [one, two] = [await open(redis.url, 'one'), await open(redis.url, 'two')];
  await one.cache.set('k', 'mine', 60);
  expect(await two.cache.get('k')).toBeUndefined();
  await one.close();
  await two.close();
  const { ms, result } = await timed(open(`redis://127.0.0.1:${await freePort()}`, 'nobody'));
  expect(ms).toBeLessThan(5_000 * slowness());
  const heard: string[] = [];
  result.relay.subscribe('t', (message) => heard.push(message));
  await result.relay.publish('t', 'm');
  await until(() => heard.length === 1, 'local delivery');
  await result.close();
  expect(() => connectRedis({ url: 'http://127.0.0.1', name: 'x', log, metrics: metrics() })).toThrow('redis.url');
});

test('single adapters can be put over one link', async () => {
  const own = connectRedis({ url: redis.url, name: 'own', log, metrics: metrics() });
  await own.opened(PATIENCE_MS);
  const prefix = `test:${randomUUID()}:`;
  const cache = createRedisCache({ link: own, prefix, log });
  await cache.set('k', 'v', 1);
  expect(await cache.get('k')).toBe('v');
  const limits = createRedisRateLimits({ link: own, prefix });
  expect(await limits.take('b', 1, 2)).toMatchObject({ allowed: true, remaining: 1 });
  expect(await own.client.keys(`${prefix}*`)).toHaveLength(2);
  await own.close();
});
