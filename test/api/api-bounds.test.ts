import { createConnection, type Socket } from 'node:net';
import { z } from 'zod';
import { authenticated } from '../../access/authorization/guards';
import { command, numbered, publicAccess, query, whole } from '../../app/operation';
import { createLocalRateLimits } from '../../engines/rate-limits/local';
import type { WebhookRoute } from '../../ingest/runtime/webhook/webhook';
import { ApiError } from '../../kernel/errors';
import { get, post } from '../../kernel/operations/routes';
import { RawJson } from '../../lib/json/raw-json';
import { callerOf, serveDeclared, type DeclaredApi } from '../support/declared-api';
import { promised } from '../support/patience';
import { parseAnswer } from '../support/raw-http';

const MiB = 1024 * 1024;
const MEGABYTE = new RawJson(JSON.stringify('x'.repeat(MiB)));
const Great = z.object({ id: z.int(), raw: z.unknown() }).meta({ id: 'Great' });
const Read = z.object({ characters: z.int() }).meta({ id: 'ReadText' });

let waiting = Promise.resolve();
/** Requests that wait. */
let working = 0;

/** Pages of megabytes, a query that waits, and a command that takes any JSON. */
const operations = [
  query({
    name: 'greats',
    summary: 'Rows of a megabyte',
    rest: get('/v1/greats'),
    pages: numbered('PaginatedGreatResult', { items: 100 }),
    guard: [authenticated],
    input: z.object({}),
    output: Great,
    async run({ page: { limit, max_bytes } }) {
      const rows = Math.min(limit, Math.ceil(max_bytes / MiB));
      return { items: Array.from({ length: rows }, (_, id) => ({ id, raw: MEGABYTE })), total: 100, cut: rows < limit };
    },
  }),
  query({
    name: 'lists',
    summary: 'Rows of a megabyte, all of them',
    rest: get('/v1/lists'),
    pages: whole(),
    guard: [authenticated],
    input: z.object({ rows: z.coerce.number().int(), plain: z.literal('yes').optional() }),
    output: z.object({ raw: z.unknown() }).meta({ id: 'GreatOfList' }),
    async run({ input: { rows, plain } }) {
      const raw = plain ? 'x'.repeat(MiB) : MEGABYTE;
      return Array.from({ length: rows }, () => ({ raw }));
    },
  }),
  query({
    name: 'waits',
    summary: 'Answers when the test lets it',
    rest: get('/v1/waits'),
    guard: [authenticated],
    input: z.object({}),
    output: z.string(),
    run: () => waiting.then(() => 'done'),
  }),
  command({
    name: 'read',
    summary: 'Reads any JSON',
    rest: post('/v1/read', { envelope: 'bare' }),
    guard: [publicAccess],
    input: z.object({ raw: z.unknown(), kind: z.literal('waits').optional() }),
    output: Read,
    async run({ input }) {
      if (input.kind) {
        working += 1;
        await waiting;
      }
      return { characters: JSON.stringify(input.raw).length };
    },
  }),
];

const callers = {
  ada: callerOf({}),
  none: callerOf({ rate_bucket: 'none', rate_limit: 0 }),
  few: callerOf({ rate_bucket: 'few', rate_limit: 10 }),
  rest: callerOf({ rate_bucket: 'rest', rate_limit: 1000 }),
  bob: callerOf({ user_id: 'user-2', rate_bucket: 'bob', rate_limit: 1000 }),
  key: callerOf({ kind: 'service_key', account_id: 'one', rate_bucket: 'key', rate_limit: 1000 }),
  other_key: callerOf({ kind: 'service_key', account_id: 'one', rate_bucket: 'other_key', rate_limit: 1000 }),
};
/** A webhook whose deliveries wait when they are signed. */
const webhook: WebhookRoute = {
  method: 'POST',
  path: '/v1/webhooks/sample',
  described: true,
  signatures: ['x-signature', 'x-old-signature'],
  admitUnsigned: () => Promise.reject(new ApiError('UNAUTHORIZED', 'Missing webhook signature')),
  async handle() {
    working += 1;
    await waiting;
    return { status: 200 };
  },
};
const requests = { address_body_bytes: 4 * MiB, body_bytes: 12 * MiB, body_progress: '30s' };
const STALLED_MS = 300;
let api: DeclaredApi;
/** Cuts readers and bodies early, so that only those that make no progress are sent to it. */
let impatient: DeclaredApi;
beforeAll(async () => {
  api = await serveDeclared(operations, {}, callers, { requests }, { webhooks: [webhook] });
  const reading = { stalled_ms: STALLED_MS, stalled_bytes: 16 * MiB };
  const hasty = { requests: { body_progress: '200ms' } };
  impatient = await serveDeclared(operations, {}, callers, hasty, { reading });
});
afterAll(() => Promise.all([api?.close(), impatient?.close()]));

const ended = (socket: Socket) => new Promise<void>((done) => socket.once('close', () => done()));

/** A connection that has sent `text`; nothing of the answer is read. */
async function deaf(url: string, text: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const { port, hostname } = new URL(url);
  const socket = createConnection({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => undefined);
  await new Promise<void>((done) => socket.once('connect', () => done()));
  socket.pause();
  await new Promise<void>((done) => socket.write(text, () => done()));
  return socket;
}

const head = (line: string, headers = '', as = 'ada') =>
  `${line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${as}\r\n${headers}\r\n`;

describe('answers', () => {
  const rows = (alias: string) => `${alias}: greats(limit: 100) { items { id raw } nextCursor }`;

  /** Asks for 12 MiB: more than the kernel takes for a connection that is not read. */
  function great(as: string): string {
    const body = JSON.stringify({ query: `{ ${['a', 'b', 'c'].map(rows).join(' ')} }` });
    const headers = `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
    return `POST /v1/gql HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${as}\r\n${headers}\r\n${body}`;
  }

  /** A reader that takes the beginning of an answer alone. */
  const begun = async (server: DeclaredApi, as: string) => {
    const socket = await deaf(server.url, great(as));
    await new Promise<void>((done) => socket.once('data', () => done()).resume());
    return socket.pause();
  };

  const status = async (server: DeclaredApi, as: string) => (await server.rest('GET', '/v1/greats', { as })).status;
  const becomes = async (server: DeclaredApi, as: string, wanted: number) => {
    const look = async () => ((await status(server, as)) === wanted ? true : undefined);
    expect(await promised(look, `${wanted} for ${as}`, 5_000)).toBe(true);
  };

  test('that wait for their readers are bounded for each user and in all', async () => {
    const reading = { share_bytes: 16 * MiB, all_bytes: 25 * MiB };
    const bounded = await serveDeclared(operations, {}, callers, {}, { reading });
    const readers = [await begun(bounded, 'rest')];
    const refused = await bounded.rest('GET', '/v1/greats', { as: 'rest' });
    expect([refused.status, refused.headers.get('retry-after'), refused.json]).toEqual([
      503,
      '5',
      { error: 'INTERNAL_SERVER_ERROR', message: 'An internal server error occurred' },
    ]);
    expect((await bounded.gql(`{ ${rows('a')} ${rows('b')} }`, { as: 'rest' })).status).toBe(503);
    expect(await status(bounded, 'bob')).toBe(200);
    readers.push(await begun(bounded, 'ada'));
    // Its own share is empty.
    expect(await status(bounded, 'bob')).toBe(503);
    for (const reader of readers) reader.destroy();
    for (const as of ['rest', 'ada', 'bob']) await becomes(bounded, as, 200);
    await bounded.close();
  });

  test('that wait for the keys of one account share their room', async () => {
    const bounded = await serveDeclared(operations, {}, callers, {}, { reading: { share_bytes: 13 * MiB } });
    const reader = await begun(bounded, 'key');
    expect(await status(bounded, 'other_key')).toBe(503);
    expect(await status(bounded, 'rest')).toBe(200);
    reader.destroy();
    await bounded.close();
  });

  test('are cut where their reader takes too little of them in the time', async () => {
    const reading = { stalled_ms: STALLED_MS, stalled_bytes: 16 * MiB, share_bytes: 13 * MiB };
    const bounded = await serveDeclared(operations, {}, callers, {}, { reading });
    const reader = await deaf(bounded.url, great('bob'));
    let closed = false;
    reader.once('close', () => (closed = true));
    await new Promise<void>((done) => reader.once('data', () => done()).resume());
    reader.pause().on('data', () => reader.pause());
    const trickle = setInterval(() => reader.resume(), 50);
    const look = async () => closed || undefined;
    expect(await promised(look, 'the connection is closed', 6_000)).toBe(true);
    clearInterval(trickle);
    expect(reader.bytesRead).toBeLessThan(12 * MiB);
    await becomes(bounded, 'bob', 200);
    await bounded.close();
  });

  test.each([
    ['payloads', ''],
    ['values', '&plain=yes'],
  ])('of %s over 16 MiB are refused on REST', async (_what, plain) => {
    const { status: refused, json } = await api.rest('GET', `/v1/lists?rows=16${plain}`);
    const message = 'The answer is larger than 16 MiB; ask for fewer items';
    expect([refused, json]).toEqual([400, { error: 'BAD_REQUEST', message }]);
    expect((await api.rest('GET', `/v1/lists?rows=15${plain}`)).status).toBe(200);
  });

  test('a page of great rows arrives whole at a reader', async () => {
    const { status, headers, text, json } = await api.rest('GET', '/v1/greats');
    expect([status, Number(headers.get('content-length'))]).toEqual([200, text.length]);
    expect(json.data).toHaveLength(4);
    expect((await api.rest('HEAD', '/v1/greats')).status).toBe(200);
  });

  const raws = Array.from({ length: 8 }, (_, index) => `raw${index}: raw`).join(' ');
  test.each([
    ['pages share the bytes of a document', `{ ${['a', 'b', 'c', 'd'].map(rows).join(' ')} }`, 200],
    ['a value under many names', `{ greats { items { ${raws} } } }`, 400],
    [
      'the same in many fields',
      `{ ${['a', 'b'].map((one) => `${one}: greats { items { ${raws} } }`).join(' ')} }`,
      400,
    ],
  ])('%s, however often it comes', async (_what, query, expected) => {
    const texts = new Set<string>();
    for (let call = 1; call <= 4; call += 1) {
      const { status, text } = await api.gql(query);
      expect([call, status]).toEqual([call, expected]);
      expect(text.length).toBeLessThan(16 * MiB);
      texts.add(text);
    }
    expect(texts.size).toBe(1);
    const refusal = {
      message: 'The answer is larger than 16 MiB; ask for fewer items',
      extensions: { code: 'BAD_REQUEST' },
    };
    const { errors, data } = JSON.parse([...texts][0]!) as { errors?: unknown; data?: Record<string, unknown> };
    expect(errors ?? Object.keys(data!)).toEqual(expected === 200 ? ['a', 'b', 'c', 'd'] : [refusal]);
  });
});

describe('bodies', () => {
  const BODY = 900_000;
  const begun = (as = 'ada') =>
    head('POST /v1/read', `content-type: application/json\r\ncontent-length: ${BODY}\r\n`, as);
  const body = JSON.stringify({ kind: 'waits', raw: '' }).replace('""', `"${'x'.repeat(BODY - 25)}"`);
  const held = (host?: string) => deaf(api.url, begun() + body, host);
  const four = (text: string) => Promise.all([1, 2, 3, 4].map(() => deaf(api.url, text)));
  /** Requests of the kind `waits` wait until the function that it returns is called. */
  function hold(): () => void {
    let end = (): void => undefined;
    waiting = new Promise((done) => (end = done));
    working = 0;
    return () => end();
  }
  const works = async (count: number) => {
    const look = async () => (working === count ? true : undefined);
    expect(await promised(look, `${count} requests are worked on`, 5_000)).toBe(true);
  };
  /** Fills the room of an address, but for a rest that is smaller than any chunk. */
  async function fill(): Promise<Socket[]> {
    const sockets = await four(begun() + body);
    await works(4);
    sockets.push(await deaf(api.url, begun() + body.slice(0, 4 * MiB - 4 * BODY - 1_000)));
    const look = async () => ((await free()).status === 503 ? true : undefined);
    expect(await promised(look, 'no room for a body', 5_000)).toBe(true);
    return sockets;
  }
  const answerOf = async (socket: Socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).resume();
    await Promise.race([ended(socket), new Promise((done) => socket.once('end', done))]);
    return parseAnswer(text);
  };
  const free = () => api.rest('POST', '/v1/read', { body: { raw: 'x'.repeat(BODY) } });

  test('that are under way are bounded for each address and in all, and leave room when they end', async () => {
    expect(body).toHaveLength(BODY);
    const end = hold();
    const own = await four(begun() + body);
    await works(4);
    const refused = await answerOf(await held());
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5', connection: 'close' } });
    expect((await api.rest('POST', '/v1/read', { body: { raw: 'small' } })).status).toBe(200);
    const of = (count: number, host: string) => Array.from({ length: count }, () => held(host));
    const others = await Promise.all([...of(4, '127.0.0.2'), ...of(4, '127.0.0.3')]);
    await works(12);
    others.push(await held('127.0.0.4'));
    await works(13);
    expect(await answerOf(await held('127.0.0.5'))).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    for (const socket of [...own, ...others]) socket.destroy();
    const look = async () => ((await free()).status === 200 ? true : undefined);
    expect(await promised(look, 'room for a body', 5_000)).toBe(true);
    // Bodies that were worked on have left their room as well.
    for (let count = 0; count < 10; count += 1) expect((await free()).status).toBe(200);
    end();
  });

  test.each(['x-signature', 'x-old-signature'])('of webhooks with %s count in the process alone', async (name) => {
    const end = hold();
    const headers = `${name}: any\r\ncontent-length: ${BODY}\r\n`;
    const deliver = () => deaf(api.url, head('POST /v1/webhooks/sample', headers) + body);
    const signed = await Promise.all(Array.from({ length: 6 }, deliver));
    await works(6);
    expect(await answerOf(await deliver())).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect((await free()).status).toBe(200);
    for (const socket of signed) socket.destroy();
    end();
    const look = async () =>
      (await api.rest('POST', '/v1/webhooks/sample', { body, headers: { [name]: 'any' } })).status === 200
        ? true
        : undefined;
    expect(await promised(look, 'room for a delivery', 5_000)).toBe(true);
  });

  test('of signed webhooks have room where other bodies fill that of their address', async () => {
    const end = hold();
    const others = await fill();
    const headers = `x-signature: any\r\ncontent-length: ${BODY}\r\nconnection: close\r\n`;
    const signed = await deaf(api.url, head('POST /v1/webhooks/sample', headers) + body);
    await works(5);
    end();
    expect(await answerOf(signed)).toMatchObject({ status: 200 });
    for (const socket of others) socket.destroy();
  });

  test('without progress end with 408, also where bytes came before', async () => {
    const heads = [
      begun(),
      begun() + body.slice(0, 100_000),
      head('POST /v1/read', 'content-type: application/json\r\ncontent-length: 9\r\n'),
    ];
    for (const text of heads) {
      const socket = await deaf(impatient.url, text);
      const { status, headers, body: answer } = await answerOf(socket);
      expect([status, headers.connection, JSON.parse(answer)]).toEqual([
        408,
        'close',
        { error: 'BAD_REQUEST', message: 'Nothing of the body arrived for 0.2 s' },
      ]);
    }
  });

  test('that are only announced take no room', async () => {
    const idle = [...(await four(begun())), ...(await four(begun()))];
    for (let count = 0; count < 10; count += 1) expect((await free()).status).toBe(200);
    for (const socket of idle) socket.destroy();
  });

  test('of anonymous callers fill a part of the room only', async () => {
    const end = hold();
    const sockets = await Promise.all([1, 2, 3].map(() => deaf(api.url, begun('nobody') + body)));
    await works(3);
    const { status } = await api.rest('POST', '/v1/read', { as: 'nobody', body: { raw: 'x'.repeat(BODY) } });
    expect([status, (await free()).status]).toEqual([503, 200]);
    for (const socket of sockets) socket.destroy();
    end();
  });

  test('of a query, which no route reads, are thrown away where there is no room', async () => {
    const end = hold();
    const others = await fill();
    const reader = await deaf(api.url, head('GET /v1/waits', `content-length: ${BODY}\r\n`) + body);
    await free();
    end();
    expect(await answerOf(reader)).toMatchObject({ status: 200 });
    for (const socket of others) socket.destroy();
  });

  test('of requests that wait for their turn on a connection take no room', async () => {
    const end = hold();
    const queued = await four(head('GET /v1/waits') + begun() + body);
    for (let count = 0; count < 10; count += 1) expect((await free()).status).toBe(200);
    for (const socket of queued) socket.destroy();
    end();
  });

  /** Writes until the server has closed the connection. */
  async function cut(socket: Socket): Promise<void> {
    const look = async () => socket.destroyed || (socket.write('x'), undefined);
    expect(await promised(look, 'the connection is closed', 5_000)).toBe(true);
  }

  /** A connection that sends the head of a body of 900,000 bytes and stays open after the end of the answer. */
  function unfinished(line: string, as: string): Socket {
    const { port, hostname } = new URL(api.url);
    const socket = createConnection({ port: Number(port), host: hostname, allowHalfOpen: true });
    socket.on('error', () => undefined);
    socket.write(head(line, 'content-type: application/json\r\ncontent-length: 900000\r\n', as) + 'x'.repeat(10_000));
    return socket;
  }

  test.each([
    ['without a route', 'POST /v1/unknown', 'ada', 404],
    ['of another method', 'POST /v1/greats', 'ada', 405],
    ['beyond a limit', 'POST /v1/read', 'none', 429],
    ['without a signature', 'POST /v1/webhooks/sample', 'ada', 401],
  ])('of requests %s are not awaited: the answer ends the connection', async (_what, line, as, status) => {
    const socket = unfinished(line, as);
    expect(await answerOf(socket)).toMatchObject({ status, headers: { connection: 'close' } });
    await cut(socket);
  });

  test('above the largest size end the connection after the answer', async () => {
    const headers = `content-type: application/json\r\ncontent-length: ${2 * MiB}\r\n`;
    const socket = await deaf(api.url, head('POST /v1/read', headers) + 'x'.repeat(10_000));
    expect(await answerOf(socket)).toMatchObject({ status: 413, headers: { connection: 'close' } });
  });

  test('of a refused request that is sent on is cut, and no request behind it runs', async () => {
    working = 0;
    const socket = unfinished('POST /v1/unknown', 'ada');
    const behind = JSON.stringify({ kind: 'waits', raw: 1 });
    socket.write('x'.repeat(890_000) + head('POST /v1/read', `content-length: ${behind.length}\r\n`) + behind);
    await cut(socket.resume());
    expect(working).toBe(0);
  });

  test('that take longer than a minute are not read to their end after the refusal', async () => {
    working = 0;
    const asked = new Promise<Socket>((done) => api.server.once('request', (request) => done(request.socket)));
    const late = JSON.stringify({ kind: 'waits', raw: 1 });
    const { port, hostname } = new URL(api.url);
    const socket = createConnection({ port: Number(port), host: hostname, allowHalfOpen: true });
    socket.on('error', () => undefined);
    socket.write(head('POST /v1/read', `content-type: application/json\r\ncontent-length: ${late.length}\r\n`));
    // As Node reports it, which looks twice a minute.
    const error = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    api.server.emit('clientError', error, await asked);
    expect(await answerOf(socket)).toMatchObject({ status: 408, headers: { connection: 'close' } });
    socket.write(late);
    await cut(socket);
    expect(working).toBe(0);
  });

  test.each([
    ['a name', { ['m'.repeat(100_000)]: 1 }],
    ['a value', { raw: 1, kind: 'k'.repeat(100_000) }],
  ])('are refused in a short text, whatever %s they have', async (_what, body) => {
    const { status, text } = await api.rest('POST', '/v1/read', { body });
    expect([status, text.length < 1_000]).toEqual([400, true]);
  });
});

describe('pipelined requests', () => {
  test('run one after the other, each once the answer before it was sent', async () => {
    let end = (): void => undefined;
    waiting = new Promise((done) => (end = done));
    working = 0;
    const body = JSON.stringify({ kind: 'waits', raw: 1 });
    const read = head('POST /v1/read', `content-type: application/json\r\ncontent-length: ${body.length}\r\n`) + body;
    const last = head('GET /v1/greats?limit=1', 'connection: close\r\n');
    const socket = await deaf(api.url, read.repeat(5) + last);
    const look = async () => (working === 1 ? true : undefined);
    expect(await promised(look, 'the first request runs', 5_000)).toBe(true);
    // Another connection is answered meanwhile.
    expect((await api.rest('GET', '/v1/greats?limit=1')).status).toBe(200);
    expect(working).toBe(1);
    end();
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).resume();
    await ended(socket);
    expect([working, text.match(/HTTP\/1\.1 \d+/g)]).toEqual([5, Array.from({ length: 6 }, () => 'HTTP/1.1 200')]);
    expect(text.indexOf('"characters"')).toBeLessThan(text.indexOf('"_meta"'));
  });

  test('behind an answer that is not read do not run, and hold one answer', async () => {
    const bounded = await serveDeclared(operations, {}, callers, {}, { reading: { share_bytes: 17 * MiB } });
    const page = (headers = '') => head('GET /v1/lists?rows=15', headers);
    const reader = await deaf(bounded.url, page() + page() + page('connection: close\r\n'));
    await new Promise<void>((done) => reader.once('data', () => done()).resume());
    reader.pause();
    // Fits next to one answer alone.
    expect((await bounded.rest('GET', '/v1/lists?rows=1', { as: 'ada' })).status).toBe(200);
    reader.resume();
    await ended(reader);
    expect(reader.bytesRead).toBeGreaterThan(3 * 15 * MiB);
    await bounded.close();
  });

  test('of a connection that ends do not run', async () => {
    let end = (): void => undefined;
    waiting = new Promise((done) => (end = done));
    working = 0;
    const body = JSON.stringify({ kind: 'waits', raw: 1 });
    const read = head('POST /v1/read', `content-type: application/json\r\ncontent-length: ${body.length}\r\n`) + body;
    const socket = await deaf(api.url, read.repeat(3));
    const look = async () => (working === 1 ? true : undefined);
    expect(await promised(look, 'the first request runs', 5_000)).toBe(true);
    socket.resetAndDestroy();
    end();
    expect((await api.rest('POST', '/v1/read', { body: { raw: 1 } })).status).toBe(200);
    expect(working).toBe(1);
  });

  test('beyond a hundred on a connection close it', async () => {
    waiting = new Promise(() => undefined);
    const socket = await deaf(api.url, head('GET /v1/waits').repeat(200));
    socket.resume();
    await ended(socket);
    expect(socket.bytesRead).toBe(0);
  });
});

test('a document that is new costs a unit more for each 1,024 characters', async () => {
  const query = `{ ping }${' '.repeat(3 * 1024)}`;
  const remaining = async (text: string) => (await api.gql(text, { as: 'few' })).headers.get('ratelimit-remaining');
  expect(await remaining('{ ping }')).toBe('9');
  expect(await remaining(query)).toBe('5');
  expect(await remaining(query)).toBe('4');
  expect((await api.gql(`${query} ${' '.repeat(2 * 1024)}`, { as: 'few' })).status).toBe(429);
});

test('a document that is new counts against the account of a key too', async () => {
  const local = createLocalRateLimits();
  const taken: [bucket: string, units: number][] = [];
  const take: typeof local.take = (bucket, units, limit) => {
    taken.push([bucket, units]);
    return local.take(bucket, units, limit);
  };
  const counted = await serveDeclared(operations, {}, callers, {}, { rate_limits: { ...local, take } });
  await counted.gql(`{ ping }${' '.repeat(3 * 1024)}`, { as: 'key' });
  const both = (units: number) => ['key', 'account:one'].map((bucket) => [bucket, units]);
  expect(taken).toEqual([...both(1), ...both(3)]);
  await counted.close();
  await local.close();
});
