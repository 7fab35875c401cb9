import { createKurrentEventStore, type KurrentEventStoreOptions } from '../../engines/event-store/kurrentdb/store';
import type { EventBatch, EventStore } from '../../engines/event-store/port';
import { happened, until } from '../contracts/event-store';
import { keptLog } from '../support/log';
import { KurrentCluster } from './kurrentdb-server/cluster';
import { TLS } from './kurrentdb-server/tls';

const metadata = { actor_kind: 'user', actor_id: 'u-1' };
const one = (stream: string, expected: 'none' | 'any' | number, n: number) => [
  { stream, expected, events: [happened('x:y', { n })] },
];
const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** A cluster of test nodes: what a client meets when nodes go, come back, and hand over the lead. */
describe('the KurrentDB adapter on a cluster, against the test server', () => {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function serve(...options: Parameters<typeof KurrentCluster.start>): Promise<KurrentCluster> {
    const cluster = await KurrentCluster.start(...options);
    closers.push(() => cluster.stop());
    return cluster;
  }
  async function open(url: string, options: Partial<KurrentEventStoreOptions> = {}): Promise<EventStore> {
    const store = await createKurrentEventStore({ url, log: keptLog(), ...options });
    closers.push(() => store.close());
    return store;
  }
  function tail(store: EventStore, after: string | null = null) {
    const batches: EventBatch[] = [];
    store.subscribe({ after }, async (batch) => void batches.push(batch));
    return () => batches.flatMap(({ events }) => events.map(({ data }) => data['n']));
  }
  async function everything(store: EventStore): Promise<unknown[]> {
    const seen: unknown[] = [];
    for await (const { events } of store.readAll(null)) seen.push(...events.map(({ data }) => data['n']));
    return seen;
  }

  test('a node that does not lead names the leader, and everything goes there', async () => {
    const cluster = await serve(2);
    const store = await open(cluster.url([1]));
    const seen = tail(store);
    for (const n of numbers(5)) await store.append(one('s', n === 0 ? 'none' : n - 1, n), metadata);
    await until(() => seen().length === 5, 'the events');
    expect(seen()).toEqual(numbers(5));
    expect((await store.read('s')).map(({ revision }) => revision)).toEqual(numbers(5));
  });

  test('the lead moves back and forth under appends and a tail: nothing is lost, nothing twice, the order stays', async () => {
    const cluster = await serve(3);
    const store = await open(cluster.url([0]));
    const seen = tail(store);
    for (const n of numbers(30)) {
      if (n % 5 === 4) cluster.elect(((n / 5) % 3) | 0);
      const { revisions } = await store.append(one('s', n === 0 ? 'none' : n - 1, n), metadata);
      expect(revisions).toEqual({ s: n });
    }
    await until(() => seen().length >= 30, 'the events');
    expect(seen()).toEqual(numbers(30));
    expect(await everything(store)).toEqual(numbers(30));
  });

  test.each([
    ['several hosts', 'kurrentdb', [0, 1, 2]],
    ['discovery', 'kurrentdb+discover', [2]],
    ['discovery under the older name', 'esdb+discover', [2]],
  ])('the leader dies with an answer owed, and another node leads (%s)', async (_, scheme, hosts) => {
    const cluster = await serve(3);
    const store = await open(cluster.url(hosts, { scheme }));
    const seen = tail(store);
    for (const n of numbers(3)) await store.append(one('s', 'any', n), metadata);
    await until(() => seen().length === 3, 'the first events');
    cluster.nodes[0]!.loseReplies(1);
    const owed = store.append(one('s', 'any', 3), metadata);
    await until(() => cluster.log.stream('s').length === 4, 'the append that is stored');
    await cluster.nodes[0]!.down();
    cluster.elect(undefined);
    const during = store.append(one('s', 'any', 4), metadata);
    await new Promise((resolve) => setTimeout(resolve, 300));
    cluster.elect(1);
    expect((await owed).revisions).toEqual({ s: 3 });
    expect((await during).revisions).toEqual({ s: 4 });
    await until(() => seen().length >= 5, 'the events after the election');
    await cluster.nodes[0]!.up();
    await store.append(one('s', 4, 5), metadata);
    await until(() => seen().length >= 6, 'the event after the return');
    expect(seen()).toEqual(numbers(6));
    expect(await everything(store)).toEqual(numbers(6));
  });

  test('the leader stands still (stopped, its sockets open), and another node leads: the append owed is stored once', async () => {
    const cluster = await serve(3);
    const store = await open(cluster.url([0, 1, 2], { extra: '&defaultDeadline=1000' }));
    await store.append(one('s', 'none', 0), metadata);
    cluster.nodes[0]!.freeze();
    const owed = store.append(one('s', 0, 1), metadata);
    cluster.elect(1);
    expect((await owed).revisions).toEqual({ s: 1 });
    expect(await everything(store)).toEqual([0, 1]);
  });

  test('each node is restarted in turn, under writers and a tail', async () => {
    const cluster = await serve(3);
    const store = await open(cluster.url());
    const seen = tail(store);
    let writing = true;
    let sent = 0;
    const writer = (async () => {
      while (writing) {
        await store.append(one('s', sent === 0 ? 'none' : sent - 1, sent), metadata);
        sent += 1;
      }
    })();
    for (const n of [0, 1, 2, 0]) {
      const before = sent;
      await cluster.nodes[n]!.down();
      cluster.elect((n + 1) % 3);
      await until(() => sent > before + 5, 'appends with a node away');
      await cluster.nodes[n]!.up();
    }
    writing = false;
    await writer;
    await until(() => seen().length >= sent, 'every event');
    expect(seen()).toEqual(numbers(sent));
    expect(cluster.log.stream('s')).toHaveLength(sent);
  });

  test('a node that lags behind hides nothing: what was appended is there at once, and no page skips it', async () => {
    const cluster = await serve(2);
    cluster.nodes[1]!.copy.hold();
    const store = await open(cluster.url([0, 1], { extra: '&nodePreference=follower' }));
    const { position } = await store.append(one('s', 'none', 0), metadata);
    expect(await store.head()).toBe(position);
    expect(await everything(store)).toEqual([0]);
    expect(await store.read('s')).toHaveLength(1);
    const seen = tail(store);
    for (const n of [1, 2]) await store.append(one('s', 'any', n), metadata);
    await until(() => seen().length === 3, 'the events');
    cluster.nodes[1]!.copy.release();
    await store.append(one('s', 'any', 3), metadata);
    await until(() => seen().length === 4, 'the last event');
    expect(seen()).toEqual(numbers(4));
  });

  test('a tail on a node that hears nothing of the new leader is moved', async () => {
    const cluster = await serve(2);
    const store = await open(cluster.url([0]), { stalled_after_ms: 300 });
    const seen = tail(store);
    await store.append(one('s', 'none', 0), metadata);
    await until(() => seen().length === 1, 'the first event');
    cluster.nodes[0]!.copy.hold();
    cluster.elect(1);
    for (const n of [1, 2]) await store.append(one('s', 'any', n), metadata);
    await until(() => seen().length >= 3, 'the events of the new leader');
    cluster.nodes[0]!.copy.release();
    await store.append(one('s', 'any', 3), metadata);
    await until(() => seen().length >= 4, 'the last event');
    expect(seen()).toEqual(numbers(4));
  });

  test('a node that names itself, or a leader that is not there, is asked again until there is one', async () => {
    const cluster = await serve(3);
    const store = await open(cluster.url([1, 2]));
    await store.append(one('s', 'none', 0), metadata);
    await cluster.nodes[0]!.down();
    const waiting = store.append(one('s', 0, 1), metadata);
    await new Promise((resolve) => setTimeout(resolve, 300));
    cluster.elect(2);
    expect((await waiting).revisions).toEqual({ s: 1 });
    expect(await everything(store)).toEqual([0, 1]);
  });

  test('login and TLS hold on the leader that another node named', async () => {
    const cluster = await serve(2, { tls: TLS, login: { username: 'lumio', password: 'p@ss:word' } });
    const login = 'lumio:p%40ss%3Aword@';
    const store = await open(cluster.url([1], { login, extra: '&tlsVerifyCert=false' }));
    const seen = tail(store);
    await store.append(one('s', 'none', 0), metadata);
    await until(() => seen().length === 1, 'the event');
    const basic = `Basic ${Buffer.from('lumio:p@ss:word').toString('base64')}`;
    const at_leader = cluster.nodes[0]!.seen.filter(({ method }) => method !== 'getSupportedMethods');
    expect(new Set(at_leader.map(({ method }) => method))).toEqual(new Set(['read', 'appendSession']));
    expect(new Set(at_leader.map(({ authorization }) => authorization))).toEqual(new Set([basic]));
  });

  test.each([
    ['the answer comes too late', 'answer_delay_ms' as const],
    ['it is stored after its client gave up', 'delay_ms' as const],
  ])('a deadline passes and %s: stored once, answered with what was stored', async (_, delay) => {
    const cluster = await serve(2);
    const store = await open(cluster.url([0], { extra: '&defaultDeadline=400' }));
    const seen = tail(store);
    await store.append(one('s', 'none', 0), metadata);
    for (const [n, expected] of [[1, 0] as const, [2, 'any'] as const]) {
      cluster.nodes[0]![delay] = 900;
      const appending = store.append(one('s', expected, n), metadata);
      await new Promise((resolve) => setTimeout(resolve, 600));
      cluster.nodes[0]![delay] = 0;
      expect((await appending).revisions).toEqual({ s: n });
    }
    // What the server still held back has come by now, and counts for nothing.
    await new Promise((resolve) => setTimeout(resolve, 500));
    await store.append(one('s', 2, 3), metadata);
    await until(() => seen().length >= 4, 'the events');
    expect(seen()).toEqual(numbers(4));
    expect(await everything(store)).toEqual(numbers(4));
  });
});
