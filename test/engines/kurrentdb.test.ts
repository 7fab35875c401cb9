import { InvalidEvent } from '../../engines/event-store/checks';
import { createKurrentEventStore } from '../../engines/event-store/kurrentdb/store';
import { parsePosition } from '../../engines/event-store/kurrentdb/events';
import type { EventBatch, EventStore, StoredEvent } from '../../engines/event-store/port';
import { eventStoreContract, happened, until, type StoreEngine } from '../contracts/event-store';
import { reservationContract } from '../contracts/reservations';
import { keptLog } from '../support/log';
import { realEngine } from './kurrentdb-server/real';
import { KurrentServer, type KurrentServerOptions } from './kurrentdb-server/server';
import { TLS } from './kurrentdb-server/tls';

/** Several nodes on one test server. */
async function makeEngine(): Promise<StoreEngine> {
  const server = await KurrentServer.start();
  const nodes: EventStore[] = [];
  return {
    async open() {
      const store = await createKurrentEventStore({ url: server.url() });
      nodes.push(store);
      return store;
    },
    breakLinks: async () => server.cut(),
    async close() {
      for (const store of nodes) await store.close();
      await server.stop();
    },
  };
}

eventStoreContract('kurrentdb, against the test server', makeEngine);

reservationContract('kurrentdb, against the test server', async () => {
  const engine = await makeEngine();
  const events = await engine.open();
  return { events, close: () => engine.close() };
});

const real_url = process.env['KURRENTDB_URL'];
if (real_url) eventStoreContract('kurrentdb, against a real server', () => realEngine(real_url));

const metadata = { actor_kind: 'user', actor_id: 'u-1' };
const one = (stream: string, expected: 'none' | 'any' | number, type = 'x:y', n = 0) => [
  { stream, expected, events: [happened(type, { n })] },
];

describe('the KurrentDB adapter, against the test server', () => {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function serve(options?: KurrentServerOptions): Promise<KurrentServer> {
    const server = await KurrentServer.start(options);
    closers.push(() => server.stop());
    return server;
  }
  async function open(url: string, log = keptLog()): Promise<EventStore> {
    const store = await createKurrentEventStore({ url, log });
    closers.push(() => store.close());
    return store;
  }
  function tail(store: EventStore, after: string | null = null, types?: string[]) {
    const batches: EventBatch[] = [];
    const subscription = store.subscribe({ after, ...(types && { types }) }, async (batch) => void batches.push(batch));
    return { batches, subscription, seen: () => batches.flatMap(({ events }) => events.map(({ data }) => data['n'])) };
  }
  async function everything(store: EventStore): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    for await (const batch of store.readAll(null)) events.push(...batch.events);
    return events;
  }
  const failure = (promise: Promise<unknown>): Promise<Error> =>
    promise.then(
      () => new Error('it did not fail'),
      (error: Error) => error,
    );

  test.each(['24.10.2', '23.10.0'])('server %s is refused with one line that names both versions', async (version) => {
    const server = await serve({ version });
    const { message } = await failure(createKurrentEventStore({ url: server.url() }));
    expect(message).toMatch(
      new RegExp(`^KurrentDB at 127\\.0\\.0\\.1:\\d+ is version ${version}; Lumio needs 25\\.1 or newer`),
    );
  });

  test('no connection string, and no server there: one line each, without the password', async () => {
    const no_string = await failure(createKurrentEventStore({ url: 'kurrentdb://lumio:secret@?tls=maybe' }));
    expect(no_string.message).toMatch(/^not a KurrentDB connection string/);
    const url = 'kurrentdb://lumio:secret@127.0.0.1:1?tls=false';
    const nobody = await failure(createKurrentEventStore({ url, connect_for_ms: 300 }));
    expect(nobody.message).toMatch(/^KurrentDB at 127\.0\.0\.1:1 cannot be used/);
    for (const { message } of [no_string, nobody]) expect(message).not.toMatch(/secret|\n/);
  });

  test('a server that comes up late is waited for', async () => {
    const server = await serve();
    await server.down();
    const opening = open(server.url());
    await new Promise((resolve) => setTimeout(resolve, 400));
    await server.up();
    const store = await opening;
    await store.append(one('s', 'none'), metadata);
    expect(await store.read('s')).toHaveLength(1);
  });

  test('login and TLS come from the connection string; a wrong password is told at once', async () => {
    const server = await serve({ tls: TLS, login: { username: 'lumio', password: 'p@ss:word' } });
    const extra = '&tlsVerifyCert=false';
    const store = await open(server.url({ login: 'lumio:p%40ss%3Aword@', extra }));
    await store.append(one('s', 'none', 'x:y', 1), metadata);
    const { seen } = tail(store);
    await until(() => seen().length === 1, 'the event');
    const basic = `Basic ${Buffer.from('lumio:p@ss:word').toString('base64')}`;
    const without = server.seen.filter(({ authorization }) => authorization !== basic).map(({ method }) => method);
    expect(new Set(server.seen.map(({ method }) => method))).toEqual(
      new Set(['getSupportedMethods', 'read', 'appendSession']),
    );
    expect(new Set(without)).toEqual(new Set(['getSupportedMethods']));
    const refused = await failure(createKurrentEventStore({ url: server.url({ login: 'lumio:wrong@', extra }) }));
    expect(refused.message).toMatch(/^KurrentDB at 127\.0\.0\.1:\d+ refuses the login/);
  });

  test('the older scheme and discovery reach the same store, which keeps its identity', async () => {
    const server = await serve();
    const said = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const first = await open(server.url());
    const others = [server.url({ scheme: 'esdb' }), server.url({ scheme: 'kurrentdb+discover' })];
    const stores = await Promise.all(others.map((url) => open(url)));
    expect(said).not.toHaveBeenCalled();
    said.mockRestore();
    expect(first.id).toMatch(/^kurrentdb:[0-9a-f-]{36}$/);
    expect(stores.map(({ id }) => id)).toEqual([first.id, first.id]);
    const other = await open((await serve()).url());
    expect(other.id).not.toBe(first.id);
    await stores[1]!.append(one('s', 'none'), metadata);
    expect(await first.read('s')).toHaveLength(1);
  });

  test('two nodes that create the identity at once agree', async () => {
    const server = await serve();
    const stores = await Promise.all(Array.from({ length: 4 }, () => open(server.url())));
    expect(new Set(stores.map(({ id }) => id)).size).toBe(1);
  });

  test.each([
    ['a fixed revision', 'none' as const],
    ['any', 'any' as const],
  ])('a reply lost after the commit (%s): the append answers with what was stored, once', async (_, expected) => {
    const server = await serve();
    const store = await open(server.url());
    if (expected === 'any') await store.append(one('s', 'any', 'x:y', 0), metadata);
    server.loseReplies(1);
    const result = await store.append([...one('s', expected, 'x:y', 1), ...one('other', 'none')], metadata);
    const stored = await store.read('s');
    expect(stored.map(({ data }) => data['n'])).toEqual(expected === 'any' ? [0, 1] : [1]);
    expect(result.revisions).toEqual({ s: stored.length - 1, other: 0 });
    expect(result.position).toBe(await store.head());
  });

  test('replies lost again and again: every append is stored once, and none is refused', async () => {
    const server = await serve();
    const store = await open(server.url());
    server.loseReplies(6);
    await Promise.all(Array.from({ length: 20 }, (_, n) => store.append(one(`s-${n % 3}`, 'any', 'x:y', n), metadata)));
    const numbers = (await everything(store)).map(({ data }) => data['n'] as number);
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  test('an append repeated after the server forgot its recent ids, by another node, with another expectation', async () => {
    const server = await serve();
    const first_node = await open(server.url());
    const any = one('s', 'any', 'x:y', 1);
    const fixed = one('t', 'none', 'x:y', 2);
    const results = [await first_node.append(any, metadata), await first_node.append(fixed, metadata)];
    await first_node.append(one('s', 0), metadata);
    await server.down();
    await server.up();
    const second_node = await open(server.url());
    expect(await second_node.append(any, metadata)).toEqual(results[0]);
    expect(await second_node.append(fixed, metadata)).toEqual(results[1]);
    const decided_anew = fixed.map((write) => ({ ...write, expected: 0 }));
    expect(await second_node.append(decided_anew, metadata)).toEqual(results[1]);
    expect(await everything(second_node)).toHaveLength(3);
  });

  test('a link cut under a live tail, and a restart under it: it goes on, with nothing lost or twice', async () => {
    const server = await serve();
    const log = keptLog();
    const store = await open(server.url(), log);
    const { seen } = tail(store);
    for (let n = 0; n < 3; n += 1) await store.append(one('s', 'any', 'x:y', n), metadata);
    await until(() => seen().length === 3, 'the first events');
    server.cut();
    for (let n = 3; n < 6; n += 1) await store.append(one('s', 'any', 'x:y', n), metadata);
    await until(() => seen().length === 6, 'the events after the cut');
    await server.down();
    const waiting = store.append(one('s', 'any', 'x:y', 6), metadata);
    await until(() => log.lines.some(({ message }) => message.startsWith('an append got no answer')), 'a failed try');
    await server.up();
    await waiting;
    await until(() => seen().length === 7, 'the event after the restart');
    expect(seen()).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(log.lines.some(({ level, message }) => level === 'warn' && message.startsWith('event tail lost'))).toBe(
      true,
    );
  });

  test('a link that goes silent with its sockets open is given up, and the append sent over another', async () => {
    const server = await serve();
    const store = await open(server.url({ extra: '&defaultDeadline=1000' }));
    await store.append(one('s', 'none'), metadata);
    server.silence();
    await store.append(one('s', 0), metadata);
    expect(await store.read('s')).toHaveLength(2);
  });

  test('a live tail is told of the position of events that it does not ask for, soon', async () => {
    const store = await open((await serve()).url());
    const { batches } = tail(store, null, ['x:wanted']);
    await store.append(one('s', 'none', 'x:wanted'), metadata);
    await until(() => batches.some(({ events }) => events.length === 1), 'the event');
    for (let n = 0; n < 5; n += 1) {
      const { position } = await store.append(one('s', n, 'x:other'), metadata);
      await until(() => store.compare(batches[batches.length - 1]!.position, position) >= 0, 'the position');
    }
    expect(batches.flatMap(({ events }) => events)).toHaveLength(1);
  });

  test('events of the server and of the adapter itself are never handed out', async () => {
    const server = await serve();
    const store = await open(server.url());
    await store.append(one('s', 'none'), metadata);
    const { batches, seen } = tail(store);
    await until(() => seen().length === 1, 'the event');
    server.log.append([
      {
        stream: '$stats-127.0.0.1:2113',
        expected: -2,
        events: [
          {
            id: happened('x:y').id,
            type: '$statsCollected',
            json: true,
            data: Buffer.from('{}'),
            metadata: Buffer.from('{}'),
          },
        ],
      },
    ]);
    await store.append(one('s', 0), metadata);
    await until(() => seen().length === 2, 'the second event');
    for (const list of [await everything(store), batches.flatMap(({ events }) => events)])
      expect(list.map(({ stream, type }) => [stream, type])).toEqual([
        ['s', 'x:y'],
        ['s', 'x:y'],
      ]);
    expect(server.log.records.some(({ stream }) => stream.startsWith('lumio-event-'))).toBe(true);
  });

  test('what this server could not keep is refused, and harms no other append', async () => {
    const server = await serve({ max_append_size: 10_000 });
    const store = await open(server.url());
    const large = [{ stream: 'l', expected: 'none' as const, events: [happened('x:y', { text: 'x'.repeat(20_000) })] }];
    const outcomes = await Promise.all([
      failure(store.append(large, metadata)),
      failure(store.append(one('s', 'none', 'with blank'), metadata)),
      failure(store.append(one('s', 'none', '$own'), metadata)),
      failure(store.append(one('$s', 'none'), metadata)),
      failure(store.append([...one('a', 'none'), ...one('A', 'none')], metadata)),
    ]);
    for (const outcome of outcomes) expect(outcome).toBeInstanceOf(InvalidEvent);
    await store.append(one('s', 'none'), metadata);
    expect(await everything(store)).toHaveLength(1);
  });

  test('a message above what the server takes is refused at once, not tried again', async () => {
    const server = await serve({ max_message_size: 10_000 });
    const log = keptLog();
    const store = await open(server.url(), log);
    const large = [{ stream: 'l', expected: 'none' as const, events: [happened('x:y', { text: 'x'.repeat(20_000) })] }];
    expect(await failure(store.append(large, metadata))).toBeInstanceOf(InvalidEvent);
    expect(log.lines).toEqual([]);
    await store.append(one('s', 'none'), metadata);
    expect(await everything(store)).toHaveLength(1);
  });

  test('discovery with several hosts reads and appends while the first one is down', async () => {
    const server = await serve();
    const { port } = server.address;
    const store = await open(`kurrentdb+discover://127.0.0.1:1,127.0.0.1:${port}?tls=false`);
    await store.append(one('s', 'none', 'x:y', 1), metadata);
    expect(await store.read('s')).toHaveLength(1);
    const { seen } = tail(store);
    await until(() => seen().length === 1, 'the event');
  });

  test.each(['25.1.0', '26.1.0'])(
    'a stored event beside a new one is refused by a server of %s, and stored once',
    async (version) => {
      const server = await serve({ version });
      const store = await open(server.url());
      const [first] = one('s', 'none', 'x:y', 1);
      await store.append([first!], metadata);
      const mixed = [first!, ...one('t', 'none', 'x:y', 2)];
      expect(await failure(store.append(mixed, metadata))).toBeInstanceOf(InvalidEvent);
      expect((await everything(store)).map(({ data }) => data['n'])).toEqual([1]);
    },
  );

  test.each([
    ['read $all', /^KurrentDB at 127\.0\.0\.1:\d+: the login may not read \$all$/],
    ['append', /^KurrentDB at 127\.0\.0\.1:\d+: the login may not append to streams/],
  ] as const)('a login that may not %s stops the start with one line', async (right, line) => {
    const server = await serve();
    // Somebody else made the installation before the right was taken.
    await (await open(server.url())).close();
    server.deny(right);
    const log = keptLog();
    const { message } = await failure(createKurrentEventStore({ url: server.url(), log }));
    expect(message).toMatch(line);
    expect(log.lines).toEqual([]);
  });

  test('a start with all rights writes nothing more', async () => {
    const server = await serve();
    await open(server.url());
    const stored = server.log.records.length;
    await open(server.url());
    expect(server.log.records).toHaveLength(stored);
  });

  test('a checkpoint of catch-up has no prepare position: a tail goes on from it, nothing lost and nothing twice', async () => {
    const server = await serve();
    const store = await open(server.url());
    await store.append(one('s', 'none', 'x:y', 0), metadata);
    const writer = await open(server.url());
    let next = 1;
    server.before_subscription = () => writer.append(one('s', 'any', 'x:y', next++), metadata);
    const { batches, seen } = tail(store);
    for (let events = 2; events <= 4; events += 1) {
      await until(() => seen().length >= events, 'the event of catch-up');
      await until(() => server.checkpoints.length >= events - 1, 'its checkpoint');
      server.cut();
    }
    server.before_subscription = undefined;
    const { position } = await store.append(one('s', 'any', 'x:y', 99), metadata);
    await until(() => seen().includes(99), 'the last event');
    const numbers = [...Array.from({ length: next }, (_, n) => n), 99];
    expect(seen()).toEqual(numbers);
    const positions = batches.map((batch) => batch.position);
    expect(positions).toEqual([...positions].sort((a, b) => store.compare(a, b)));
    expect(server.checkpoints.filter((checkpoint) => checkpoint.endsWith('/0')).length).toBeGreaterThanOrEqual(3);
    // Such a checkpoint lies before the event at its commit position.
    const again = tail(store, `${parsePosition(position).commit}/0`);
    await until(() => again.seen().length >= 1, 'the event at that position');
    expect(again.seen()).toEqual([99]);
  });

  test('an append whose leader lost its place is looked up, and answered with what was stored', async () => {
    const server = await serve();
    const store = await open(server.url());
    server.losePlace(1);
    expect((await store.append(one('s', 'none', 'x:y', 1), metadata)).revisions).toEqual({ s: 0 });
    expect(await store.read('s')).toHaveLength(1);
  });

  test('a record above its own limit is refused at once', async () => {
    const server = await serve({ max_record_size: 10_000 });
    const log = keptLog();
    const store = await open(server.url(), log);
    const large = [{ stream: 'l', expected: 'none' as const, events: [happened('x:y', { text: 'x'.repeat(20_000) })] }];
    expect(await failure(store.append(large, metadata))).toBeInstanceOf(InvalidEvent);
    expect(log.lines).toEqual([]);
    await expect(serve({ max_append_size: 1, max_record_size: 2 })).rejects.toThrow(/max-append-size/);
  });

  test('an event type with the letters of a pattern filters itself only', async () => {
    const store = await open((await serve()).url());
    await store.append(one('s', 'none', 'x:a.b'), metadata);
    await store.append(one('s', 0, 'x:a-b'), metadata);
    const types: string[] = [];
    for await (const { events } of store.readAll(null, { types: ['x:a.b'] }))
      types.push(...events.map(({ type }) => type));
    expect(types).toEqual(['x:a.b']);
  });
});
