import { createLocalSlots } from '../../../engines/slots/local';
import type { Queryable, Row } from '../../../engines/postgres/port';
import { LIMITS } from '../../../realtime/runtime/channel/limits';
import { parseClientMessage } from '../../../realtime/runtime/channel/protocol';
import { testDatabase, type TestDatabase } from '../../support/database';
import { PATIENCE_MS, promised, slowness } from '../../support/patience';
import { ACCOUNT, Client, publish, realtimeNode, type RealtimeNode, UNCOUNTED } from '../../support/realtime';

const EVENTS = `events:${ACCOUNT}`;
let t: TestDatabase;
let node: RealtimeNode;
let heads = 0;

beforeAll(async () => {
  t = await testDatabase();
  /** The database itself, with a count of what resuming clients ask it. */
  const counted: Queryable = {
    query: <R extends Row = Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]> => {
      if (name === 'realtime_head' || name === 'realtime_page') heads += 1;
      return t.db.query<R>(text, values, name);
    },
  };
  node = await realtimeNode(t, { db: counted });
});
afterAll(async () => {
  await node?.stop();
  await t?.drop();
});

test('a flood of messages is answered in order, and leaves its neighbours quick', async () => {
  const flooder = await Client.open(node.url);
  const neighbour = await Client.open(node.url);
  for (let i = 0; i < 900; i += 1) flooder.send({ type: 'unsubscribe', channel: `c:${i}` });
  await neighbour.ask({ type: 'ping' }, 'pong');
  // The neighbour waited for nothing: most of the flood is still to be answered.
  expect(flooder.messages.length).toBeLessThan(900);
  await flooder.until(() => flooder.messages.length >= 901, 'every answer');
  expect(flooder.messages.slice(1).map((message) => message.channel)).toEqual(
    Array.from({ length: 900 }, (_, i) => `c:${i}`),
  );
  flooder.end();
  neighbour.end();
});

test.each([
  ['messages that are none', '{'],
  ['frames that are too large', 'x'.repeat(65_537)],
])('an address has its sockets again within 2 s after they were closed for %s', async (_what, message) => {
  const limited = await realtimeNode(t, { slots: createLocalSlots() });
  const sockets = await Promise.all(Array.from({ length: 20 }, () => Client.open(limited.url, null)));
  // No client reads the close frame, nor answers it.
  for (const { ws } of sockets) {
    ws.pause();
    for (let n = 0; n < LIMITS.refused_in_a_row + 20; n += 1) ws.send(message);
  }
  const closed = async () => /lumio_websocket_closed_total\{code="1008"\} 20\b/.test(await limited.metrics());
  await promised(async () => (await closed()) || undefined, 'all sockets are closed', 30_000);
  const open = async () => (limited.realtime.stats().sessions === 0 ? true : undefined);
  expect(await promised(open, 'the address has its sockets again', 2_000)).toBe(true);
  const next = await Client.open(limited.url, null);
  for (const socket of [...sockets, next]) socket.end();
  await limited.stop();
});

test.each<[string, number, (client: Client) => void]>([
  ['cut off, with many messages unread', 2_000, ({ ws }) => ws.terminate()],
  ['cut off, with large messages unread', 40, ({ ws }) => ws.terminate()],
  ['closed, with some messages waiting', 5, ({ ws }) => ws.close()],
])('an address has its sockets again within 2 s after they were %s, while they wait for units', async (_, n, leave) => {
  let waiting = 0;
  const pace = async () => {
    waiting += 1;
    return 20_000;
  };
  const limited = await realtimeNode(t, { slots: createLocalSlots(), counts: { ...UNCOUNTED, pace } });
  const clients = await Promise.all(Array.from({ length: 20 }, () => Client.open(limited.url, null)));
  const message = JSON.stringify({ type: 'unsubscribe', channel: n === 40 ? 'x'.repeat(60_000) : 'x:1' });
  for (const { ws } of clients) for (let i = 0; i < n; i += 1) ws.send(message);
  await promised(async () => waiting === 20 || undefined, 'all sockets wait', 30_000);
  clients.forEach(leave);
  const gone = async () => (limited.realtime.stats().sessions === 0 ? true : undefined);
  expect(await promised(gone, 'the address has its sockets again', 2_000)).toBe(true);
  const next = await Client.open(limited.url, null);
  for (const client of [...clients, next]) client.end();
  await limited.stop();
});

const ping = (client: Client) => client.send({ type: 'ping' });
test.each([
  ['messages', ping, 600],
  ['messages that are none', (client: Client) => client.send('{'), 600],
  ['binary frames', (client: Client) => client.ws.send(Buffer.from('{}')), 600],
  ['frames that are too large', (client: Client) => client.send('x'.repeat(65_537)), 420],
])('%s: 200 of them are answered a second, then the next 200, until all are', async (_name, send, count) => {
  const client = await Client.open(node.url);
  const sent_at = performance.now();
  // A message that is valid, now and then: a socket that sends nothing but refused ones is closed.
  for (let i = 0; i < count; i += 1) (i % 50 === 49 ? ping : send)(client);
  for (let windows = 1; 200 * windows < count; windows += 1) {
    await client.until(() => client.messages.length > 1 + 200 * windows, 'the next answer');
    expect(performance.now() - sent_at).toBeGreaterThan(1_000 * windows);
  }
  await client.until(() => client.messages.length === 1 + count, 'the last answer');
  client.end();
});

test('of Ping control frames that come too fast the last is answered', async () => {
  const client = await Client.open(node.url);
  const pongs: string[] = [];
  client.ws.on('pong', (data: Buffer) => pongs.push(data.toString()));
  const sent_at = performance.now();
  for (let i = 1; i <= 2_000; i += 1) client.ws.ping(String(i));
  const deadline = Date.now() + PATIENCE_MS;
  while (pongs.at(-1) !== '2000' && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(pongs.slice(0, 200)).toEqual(Array.from({ length: 200 }, (_, i) => String(i + 1)));
  expect(pongs.at(-1)).toBe('2000');
  // 200 in each window, and each window ends with the last Ping of what was read.
  const windows = 1 + Math.ceil((performance.now() - sent_at) / 1_000);
  expect(pongs.length).toBeLessThanOrEqual(200 * windows);
  expect(windows).toBeLessThan(10 * slowness());
  await client.ask({ type: 'ping' }, 'pong');
  client.end();
});

test('a caller whose bucket is empty waits for its next unit: nothing is refused, order stays, nobody is silent', async () => {
  const taken: string[] = [];
  const own = await realtimeNode(t, {
    counts: {
      ...UNCOUNTED,
      async pace({ rate_bucket }) {
        taken.push(rate_bucket);
        return taken.length === 1 ? 2_500 : 0;
      },
    },
    windows: { silence_ms: 1_000, stall_ms: 30_000 },
  });
  const client = await Client.open(own.url);
  const sent_at = performance.now();
  for (const type of ['subscribe', 'unsubscribe', 'broadcast', 'subscribe', 'ping'])
    client.send({ type, channel: EVENTS, payload: '{"type":"x"}' });
  await client.next((message) => message.type === 'pong', 'the pong');
  expect(performance.now() - sent_at).toBeGreaterThan(2_400);
  expect(client.messages.filter(({ type }) => type !== 'event').map(({ type }) => type)).toEqual([
    'welcome',
    'subscribed',
    'unsubscribed',
    'subscribed',
    'pong',
  ]);
  expect(taken).toEqual(Array<string>(5).fill('messages:user:u1'));
  client.end();
  await own.stop();
});

const DEEP = '['.repeat(60_000);
const MEMBERS = Array.from({ length: 6_000 }, (_, n) => `,"m${n}":0`).join('');
const WIDE = `{"type":"subscribe","channel":"${EVENTS}"${MEMBERS}}`;

test('every message costs its unit, whatever its kind, and a refused one several', async () => {
  const taken: number[] = [];
  const counts = { ...UNCOUNTED, pace: async (_bucket: unknown, units: number) => taken.push(units) * 0 };
  const own = await realtimeNode(t, { counts });
  const client = await Client.open(own.url);
  const cost = async (message: string, answer: string) => {
    const before = taken.length;
    const from = client.messages.length;
    client.send(message);
    const { code } = await client.next(({ type }) => type === answer, answer, from);
    // Later messages wait until the price of a refused one is taken.
    await client.ask({ type: 'unsubscribe', channel: 'none:1' }, 'unsubscribed');
    return [code ?? answer, taken.slice(before, -1).reduce((sum, units) => sum + units, 0)];
  };
  expect(await cost(JSON.stringify({ type: 'subscribe', channel: EVENTS }), 'subscribed')).toEqual(['subscribed', 1]);
  expect(await cost(JSON.stringify({ type: 'unsubscribe', channel: EVENTS }), 'unsubscribed')).toEqual([
    'unsubscribed',
    1,
  ]);
  for (const refused of [DEEP, WIDE, '{', '"ping"', '{"type":"none"}'])
    expect(await cost(refused, 'error')).toEqual(['INVALID_FORMAT', 5]);
  expect(await cost('x'.repeat(65_537), 'error')).toEqual(['MESSAGE_TOO_LARGE', 5]);
  // A heartbeat is free each five seconds, in any spelling.
  expect(await cost('{ "type" : "ping" }', 'pong')).toEqual(['pong', 0]);
  expect(await cost('{"type":"ping"}', 'pong')).toEqual(['pong', 1]);
  expect(await cost('{"type":"ping","pad":1}', 'pong')).toEqual(['pong', 1]);
  client.end();
  await own.stop();
});

test('no message of 60 KB costs more than a few passes over its text', () => {
  const BYTES = 60_000;
  const cpu = (text: string) => {
    let least = Infinity;
    for (let round = 0; round < 5; round += 1) {
      const before = process.cpuUsage();
      for (let count = 0; count < 20; count += 1) parseClientMessage(text);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, user + system);
    }
    return least;
  };
  const blanks = cpu(`${' '.repeat(BYTES)}{"type":"ping"}`);
  const texts = {
    DEEP,
    WIDE,
    digits: `{"type":"ping","a":${'9'.repeat(BYTES)}}`,
    escapes: `{"type":"${'\\u0061'.repeat(BYTES / 6)}"}`,
    quotes: `{"type":"${'\\"'.repeat(BYTES / 2)}"}`,
    backslashes: `"${'\\'.repeat(BYTES)}`,
    texts: '"a"'.repeat(BYTES / 3),
    brackets: '[]'.repeat(BYTES / 2),
    colons: `{"type":"ping"${':'.repeat(BYTES)}`,
  };
  for (const [name, text] of Object.entries(texts)) {
    expect({ name, passes: cpu(text) / blanks < 10 }).toEqual({ name, passes: true });
  }
});

test('a socket that sends only refused messages is closed, one with a valid one between is not', async () => {
  const client = await Client.open(node.url);
  for (let i = 0; i < 99; i += 1) client.send('{');
  await client.ask({ type: 'ping' }, 'pong');
  for (let i = 0; i < 100; i += 1) client.send(DEEP);
  expect(await client.closed()).toBe(1008);
  expect(client.close_reason).toBe('INVALID_FORMAT');
  expect(client.messages.filter(({ code }) => code === 'INVALID_FORMAT')).toHaveLength(199);
  expect(await node.metrics()).toMatch(/lumio_websocket_closed_total\{[^}]*code="1008"[^}]*\} 1\n/);
});

test('the JSON of a broadcast is bounded in depth, and may be as wide as it likes', async () => {
  const client = await Client.open(node.url);
  await client.subscribe(EVENTS);
  const send = (payload: string) => client.send({ type: 'broadcast', channel: EVENTS, payload });
  send(`{"type":"deep","a":${'['.repeat(64)}${']'.repeat(64)}}`);
  expect(await client.next(({ type }) => type === 'error', 'the refusal')).toMatchObject({ code: 'INVALID_FORMAT' });
  send(`{"type":"wide","a":[${Array.from({ length: 9_000 }, () => '[]').join()}],"quoted":"\\"[[\\\\"}`);
  expect((await client.next(({ event_type }) => event_type === 'wide', 'the broadcast')).data).toMatchObject({
    quoted: '"[[\\',
  });
  client.end();
});

test('messages behind a subscribe wait for it: subscribe, unsubscribe, subscribe ends subscribed', async () => {
  const client = await Client.open(node.url);
  for (const type of ['subscribe', 'unsubscribe', 'subscribe', 'ping']) client.send({ type, channel: EVENTS });
  await client.next((message) => message.type === 'pong', 'the pong');
  expect(client.messages.map((message) => message.type)).toEqual([
    'welcome',
    'subscribed',
    'unsubscribed',
    'subscribed',
    'pong',
  ]);
  client.end();
});

test('a crowd that reconnects at once gets what it missed from memory, not from the database', async () => {
  const first = await Client.open(node.url);
  const since = (await first.subscribe(EVENTS)).id!;
  await publish(
    t,
    node,
    EVENTS,
    Array.from({ length: 60 }, (_, i) => ({ n: i + 1 })),
  );
  await first.until(() => first.events(EVENTS).length === 60, 'sixty');
  heads = 0;
  const crowd = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const client = await Client.open(node.url);
      expect(await client.subscribe(EVENTS, since)).toMatchObject({ recovered: true });
      await client.until(() => client.events(EVENTS).length >= 60, 'sixty');
      return client;
    }),
  );
  for (const client of crowd) {
    expect(client.events(EVENTS).map((data) => data.n)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
    client.end();
  }
  expect(heads).toBe(0);
  first.end();
});

test('names that no channel can have are not repeated whole', async () => {
  const client = await Client.open(node.url);
  const channel = 'x'.repeat(60_000);
  const repeated = { channel: 'x'.repeat(200) };
  expect(await client.ask({ type: 'unsubscribe', channel }, 'unsubscribed')).toMatchObject(repeated);
  expect(await client.subscribe(channel)).toMatchObject(repeated);
  client.end();
});
