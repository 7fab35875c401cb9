import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { listenMetrics } from '../../api/health/metrics-listener';
import { type ApiProcess, OWNER, startSampleApi, sampleApiOfFile } from '../support/api-process';
import type { TestDatabase } from '../support/database';
import { until } from '../support/projections';

const ID = '0197f3a0-0000-7000-8000-000000000001';
let database: TestDatabase;
let api: ApiProcess;
sampleApiOfFile((one, of) => ([api, database] = [one, of]));

describe('answers', () => {
  test('an item, with the vendor text byte for byte and its own address', async () => {
    const { status, text, json } = await api.rest('GET', `/v1/notes/${ID}`);
    expect(status).toBe(200);
    expect(text).toContain('"raw":{"id": 820982911946154508,  "b":1.50}');
    expect(json._links).toEqual({ self: `${api.url}/v1/notes/${ID}` });
  });
  test('a collection leaves prev and next out at the ends', async () => {
    const first = await api.rest('GET', '/v1/notes?limit=25');
    expect(first.json._meta).toEqual({ total: 60, page: 1, limit: 25, pages: 3 });
    expect(Object.keys(first.json._links)).toEqual(['self', 'first', 'next', 'last']);
    expect(first.json._links.next).toBe(`${api.url}/v1/notes?limit=25&page=2`);
    const last = await api.rest('GET', '/v1/notes?page=3&limit=25');
    expect(Object.keys(last.json._links)).toEqual(['self', 'first', 'prev', 'last']);
  });
  test('bare and empty ones', async () => {
    expect((await api.rest('GET', '/v1/server-time', { as: '' })).json).toEqual({ time: '2026-01-02T03:04:05Z' });
    const gone = await api.rest('DELETE', `/v1/notes/${ID}`);
    expect([gone.status, gone.text]).toEqual([204, '']);
  });
  test('preflights are counted apart, ask nobody who it is, and may be remembered', async () => {
    const own = await startSampleApi(database.url);
    const headers = { authorization: 'Bearer anonymous||3' };
    const options = () => fetch(`${own.url}/v1/notes`, { method: 'OPTIONS', headers });
    const answers = [];
    for (let i = 0; i < 601; i += 1) answers.push(await options());
    expect(new Set(answers.slice(0, 600).map(({ status }) => status))).toEqual(new Set([204]));
    expect(answers[0]!.headers.get('access-control-max-age')).toBe('7200');
    expect(answers[600]!.status).toBe(429);
    expect(Number(answers[600]!.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(answers[0]!.headers.get('ratelimit-limit')).toBe('600');
    const request = await fetch(`${own.url}/v1/nothing`, { headers });
    expect([request.status, request.headers.get('ratelimit-remaining')]).toEqual([404, '2']);
    await own.stop();
  });

  test('HEAD as GET without the body; OPTIONS of an allowed origin only', async () => {
    expect((await api.rest('HEAD', '/v1/server-time')).status).toBe(200);
    const preflight = (origin: string) =>
      api.rest('OPTIONS', '/v1/notes', { headers: { origin, 'access-control-request-method': 'POST' } });
    expect((await preflight('https://app.example')).headers.get('access-control-allow-origin')).toBe(
      'https://app.example',
    );
    expect((await preflight('https://evil.example')).headers.get('access-control-allow-origin')).toBeNull();
  });
  test('a named origin may read our headers and send its cookies, any other one where all may neither', async () => {
    const open = await startSampleApi(database.url, { allowed_origins: ['https://app.example', '*'] });
    const seenBy = async (of: ApiProcess, origin: string) => {
      const { headers } = await of.rest('GET', '/v1/server-time', { as: '', headers: { origin } });
      const said = ['allow-origin', 'allow-credentials'].map((name) => headers.get(`access-control-${name}`));
      return [...said, headers.get('access-control-expose-headers')?.includes('ratelimit-remaining')];
    };
    expect(await seenBy(open, 'https://app.example')).toEqual(['https://app.example', 'true', true]);
    expect(await seenBy(open, 'https://evil.example')).toEqual(['*', null, true]);
    expect((await seenBy(api, 'https://evil.example'))[0]).toBeNull();
    await open.stop();
  });
  test('a correlation id is echoed when harmless, else made', async () => {
    const own = await api.rest('GET', '/v1', { headers: { 'x-correlation-id': 'abc-1' } });
    expect(own.headers.get('x-correlation-id')).toBe('abc-1');
    const made = await api.rest('GET', '/v1', { headers: { 'x-correlation-id': 'a b"c' } });
    expect(made.headers.get('x-correlation-id')).toMatch(/^[0-9a-f]{24}$/);
  });
});

describe('input', () => {
  test('query texts become what the schema asks for', async () => {
    const { json } = await api.rest('GET', '/v1/notes?types=a&types=b,c&starred=true&limit=1');
    expect(JSON.parse(json.data[0].note_text)).toEqual({ types: ['a', 'b', 'c'], starred: true, page: 1, limit: 1 });
  });
  test.each([
    ['GET', '/v1/notes?limit=x', undefined, 'VALIDATION_ERROR', /^limit: /],
    ['GET', '/v1/notes?limit=1e3', undefined, 'VALIDATION_ERROR', /^limit: /],
    ['GET', '/v1/notes?limit=', undefined, 'VALIDATION_ERROR', /^limit: /],
    ['GET', '/v1/notes?starred=yes', undefined, 'VALIDATION_ERROR', /^starred: /],
    ['GET', '/v1/notes?colour=red', undefined, 'VALIDATION_ERROR', /^colour: is not a member/],
    ['GET', '/v1/notes?types=%00', undefined, 'VALIDATION_ERROR', /NUL/],
    ['GET', '/v1/notes/not-a-uuid', undefined, 'VALIDATION_ERROR', /^id: /],
    ['POST', '/v1/notes', '{"note_text":5}', 'VALIDATION_ERROR', /^note_text: /],
    ['POST', '/v1/notes', '{"note_text":"  "}', 'VALIDATION_ERROR', /^note_text: /],
    ['POST', '/v1/notes', '{"note_text":"a","colour":1}', 'VALIDATION_ERROR', /^colour: is not a member/],
    ['POST', '/v1/notes', '{"note_text":"a\\u0000"}', 'VALIDATION_ERROR', /NUL/],
    ['POST', '/v1/notes', '{"note_text":"a\\ud800"}', 'VALIDATION_ERROR', /surrogate/],
    ['POST', '/v1/notes', '{"note_text":"a","raw":{"n":123456789012345678901}}', 'VALIDATION_ERROR', /too large/],
    ['POST', '/v1/notes', '{"note_text":"a","raw":{"n":1e999}}', 'VALIDATION_ERROR', /too large/],
    ['POST', '/v1/notes', '{"note_text":"a","raw":{"__proto__":{"x":1}}}', 'VALIDATION_ERROR', /__proto__/],
    ['POST', '/v1/notes', '{"note_text":"a","raw":{"\\u005f_proto__":{"x":1}}}', 'VALIDATION_ERROR', /__proto__/],
    ['POST', '/v1/notes', `{"note_text":"a","raw":{"__proto__"${' '.repeat(99)}:1}}`, 'VALIDATION_ERROR', /__proto__/],
    ['POST', '/v1/notes', `{"note_text":"a","raw":{"n":${'['.repeat(70)}${']'.repeat(70)}}}`, 'BAD_REQUEST', /deeper/],
    ['POST', '/v1/notes', '{"note_text":', 'BAD_REQUEST', /JSON/],
    ['POST', '/v1/notes', '{"note_text":"a', 'BAD_REQUEST', /JSON/],
    ['POST', '/v1/notes', '[1]', 'BAD_REQUEST', /object/],
    ['PATCH', `/v1/notes/${ID}`, `{"id":"${ID}","note_text":"a"}`, 'VALIDATION_ERROR', /^id: is given twice/],
  ])('%s %s %s is refused', async (method, path, body, code, message) => {
    const answer = await api.rest(method, path, { body });
    expect([answer.status, answer.json.error]).toEqual([400, code]);
    expect(answer.json.message).toMatch(message);
  });
  test('bodies of too many members and elements are refused, wherever these are', async () => {
    const members = (count: number) => Array.from({ length: count }, (_one, i) => `"m${i}":${i}`).join();
    const elements = (count: number) => Array.from({ length: count }, () => '{ }').join(' ,');
    const post = (body: string, as?: string) =>
      api.rest('POST', '/v1/notes', { body, ...(as !== undefined && { as }) });
    expect((await post(`{"raw":{${members(9_998)}},"note_text":"a:b,c"}`)).status).toBe(201);
    expect((await post(`{"raw":{"x":[${elements(9_997)}]},"note_text":"a"}`)).status).toBe(201);
    const refused = (most: number) => ({
      error: 'VALIDATION_ERROR',
      message: `The request body has more than ${most} members`,
    });
    for (const body of [
      `{"raw":{${members(9_999)}},"note_text":"a"}`,
      `{"raw":{"x":[${elements(9_998)}]},"note_text":"a"}`,
      `{${members(60_000)}}`,
      `{"raw":[${elements(9_970)},${'['.repeat(25)}1${']'.repeat(25)}],"note_text":"a","more":1,"most":1,"last":1}`,
      `{"raw":{${members(9_998)}},"note_text":[1]}`,
    ]) {
      const { status, json } = await post(body);
      expect([status, json]).toEqual([400, refused(10_000)]);
    }
    // A body of an anonymous caller is refused before the credential is missed.
    expect((await post(`{${members(1_001)}}`, '')).json).toEqual(refused(1_000));
    expect((await post(`{${members(1_000)}}`, '')).status).toBe(401);
  });
  test('escapes and large but exact numbers are kept', async () => {
    const body = '{"note_text":"q\\"\\\\u0000 \\ud83d\\ude00","raw":{"n":9007199254740991,"f":1.5e10}}';
    const { status, json } = await api.rest('POST', '/v1/notes', { body });
    expect(status).toBe(201);
    expect(json.data.note_text).toMatch(/^q"\\u0000 😀 \d+$/);
    expect(json.data.raw).toEqual({ n: 9007199254740991, f: 1.5e10, seed: null });
  });
  test('bodies beyond 1 MiB are 413, foreign content types 415', async () => {
    const large = await api.rest('POST', '/v1/notes', { body: JSON.stringify({ note_text: 'x'.repeat(1024 * 1024) }) });
    expect([large.status, large.json.error]).toEqual([413, 'BAD_REQUEST']);
    const form = await api.rest('POST', '/v1/notes', {
      body: 'a=b',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect([form.status, form.json.error]).toEqual([415, 'BAD_REQUEST']);
  });
  test('unknown routes are 404, unknown methods 405', async () => {
    expect((await api.rest('GET', '/v1/nope')).json).toEqual({ error: 'NOT_FOUND', message: 'Not found' });
    const put = await api.rest('PUT', '/v1/notes');
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS, POST']);
  });
});

describe('guards', () => {
  test.each([
    ['', 401, 'UNAUTHORIZED', 'Authentication required'],
    ['overlay|notes:read', 403, 'FORBIDDEN', 'Missing permission: notes:read'],
    ['service_key', 403, 'FORBIDDEN', 'Missing permission: notes:read'],
    ['system_key|*:*', 403, 'FORBIDDEN', 'Missing permission: notes:read'],
    ['system_key|notes:*', 400, 'BAD_REQUEST', 'An account is required: send its id in the X-Lumio-Account header'],
  ])('%s gets %i %s', async (as, status, error, message) => {
    const answer = await api.rest('GET', '/v1/notes', { as });
    expect([answer.status, answer.json]).toEqual([status, { error, message }]);
    const twin = await api.gql('{notes{total}}', { as });
    expect(twin.json.errors[0]).toEqual({
      message,
      locations: [{ line: 1, column: 2 }],
      path: ['notes'],
      extensions: { code: error },
    });
  });
  test('a system key names its account, whose features count', async () => {
    const as = 'system_key|notes:*';
    expect((await api.rest('GET', '/v1/notes', { as, headers: { 'x-lumio-account': 'account-1' } })).status).toBe(200);
    const off = await api.rest('GET', '/v1/notes', { as, headers: { 'x-lumio-account': 'account-off' } });
    expect(off.json).toEqual({ error: 'FEATURE_DISABLED', message: 'Feature not enabled: feature:notes' });
  });
  test('the first-party gate comes before the permission, the permission before the input', async () => {
    const popout = await api.rest('PATCH', `/v1/notes/${ID}`, { as: 'popout', body: { nonsense: 1 } });
    expect(popout.json).toEqual({ error: 'FORBIDDEN', message: 'This action requires a logged-in user' });
    const jwt = await api.rest('PATCH', `/v1/notes/${ID}`, { as: 'jwt', body: { nonsense: 1 } });
    expect(jwt.json).toEqual({ error: 'FORBIDDEN', message: 'Missing permission: notes:edit' });
  });
});

test('a cookie alone changes nothing for a page from elsewhere', async () => {
  const create = (origin: Record<string, string>) =>
    api.rest('POST', '/v1/notes', {
      as: '',
      body: { note_text: 'a' },
      headers: { cookie: 'lumio-popout-token=x', ...origin },
    });
  expect((await create({})).status).toBe(401);
  expect((await create({ origin: 'https://evil.example' })).status).toBe(401);
  expect((await create({ origin: 'null' })).status).toBe(401);
  expect((await create({ origin: api.url })).status).toBe(201);
  expect((await create({ origin: 'https://app.example' })).status).toBe(201);
  expect((await api.rest('GET', '/v1/notes', { as: '', headers: { cookie: 'lumio-popout-token=x' } })).status).toBe(
    200,
  );
  const { port } = new URL(api.url);
  expect((await create({ origin: `HTTP://127.0.0.1:${port}` })).status).toBe(201);
  expect((await create({ origin: 'HTTPS://App.example:443' })).status).toBe(201);
  expect((await create({ origin: `https://127.0.0.1:${port}` })).status).toBe(201);
  expect((await create({ origin: 'http://127.0.0.1' })).status).toBe(401);
});

test('null and file:// never let a cookie count, nor have CORS headers', async () => {
  const named = await startSampleApi(database.url, { allowed_origins: ['null', 'file://'] });
  const seen: unknown[] = [];
  for (const origin of ['null', 'file://']) {
    const headers = { cookie: 'lumio-popout-token=x', origin };
    for (const [method, body] of [['POST', { note_text: 'a' }], ['GET']] as const) {
      const answer = await named.rest(method, '/v1/notes', { as: '', body, headers });
      seen.push([origin, method, answer.status, answer.headers.get('access-control-allow-origin')]);
    }
  }
  await named.stop();
  expect(seen).toEqual([
    ['null', 'POST', 401, null],
    ['null', 'GET', 401, null],
    ['file://', 'POST', 401, null],
    ['file://', 'GET', 401, null],
  ]);
});

test('a request that is on its way when the server stops is answered as any other, and its connection ends', async () => {
  const stopping = await startSampleApi(database.url);
  const { port, hostname, host } = new URL(stopping.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(`GET /v1/server-time HTTP/1.1\r\nhost: ${host}\r\n`);
  // Its first lines are there before the stop begins, its end comes when the server is about to close.
  expect((await stopping.rest('GET', '/v1')).status).toBe(200);
  const stopped = stopping.stop();
  await new Promise((wait) => setTimeout(wait, 600));
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
  socket.write('\r\n');
  await once(socket, 'close');
  await stopped;
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toMatch(/connection: close/i);
});

test('a request that came while the stopping process stood still is answered, not cut', async () => {
  const stopping = await startSampleApi(database.url, {}, { stands_still: true });
  const { port, hostname, host } = new URL(stopping.url);
  const socket = connect(Number(port), hostname);
  const ask = `GET /v1/server-time HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
  let answers = '';
  socket.on('data', (chunk: Buffer) => (answers += chunk.toString()));
  const answered = (times: number) => until(() => answers.split('HTTP/1.1 200 ').length > times);
  socket.write(ask);
  await answered(1);
  const stopped = stopping.stop();
  const state = () => /\) (\w)/.exec(readFileSync(`/proc/${stopping.pid}/stat`, 'utf8'))?.[1];
  await until(() => state() === 'T');
  expect(await refused(stopping.url)).toBe(true);
  socket.write(ask);
  // For longer than who asks nothing is waited for.
  await new Promise((wait) => setTimeout(wait, 600));
  process.kill(stopping.pid, 'SIGCONT');
  await once(socket, 'close');
  await stopped;
  await answered(2);
});

test('metrics are served on a listener of their own and nowhere else', async () => {
  const metrics = await listenMetrics({ host: '127.0.0.1', port: 0, render: async () => 'lumio_up 1\n' });
  try {
    const answer = await fetch(metrics.url);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await answer.text()).toBe('lumio_up 1\n');
    expect((await fetch(metrics.url.replace('/metrics', '/v1'))).status).toBe(404);
    expect((await api.rest('GET', '/metrics')).status).toBe(404);
  } finally {
    await metrics.close();
  }
});

describe('failures', () => {
  test('the bodies that the documents fix are sent as they are', async () => {
    const rest = await api.rest('POST', '/v1/notes', { body: { note_text: 'closed' } });
    expect([rest.status, rest.json]).toEqual([
      403,
      { error: 'Account creation is currently disabled', error_code: 'account_creation_disabled' },
    ]);
    const twin = await api.gql('mutation { createNote(input: {noteText: "closed"}) { id } }');
    expect(twin.json.errors[0]).toMatchObject({
      message: 'Account creation is currently disabled',
      extensions: { code: 'ACCOUNT_CREATION_DISABLED' },
    });
  });
  test('details of 5xx stay inside', async () => {
    const broken = await api.rest('POST', '/v1/notes', { body: { note_text: 'broken' } });
    expect([broken.status, broken.json]).toEqual([
      500,
      { error: 'INTERNAL_SERVER_ERROR', message: 'An internal server error occurred' },
    ]);
    const database = await api.rest('GET', '/v1/failing-database');
    expect(database.json).toEqual({ error: 'DATABASE_ERROR', message: 'An internal database error occurred' });
    const twin = await api.gql('{failingDatabase{time}}');
    expect(twin.json.errors[0]).toMatchObject({
      message: 'An internal database error occurred',
      extensions: { code: 'DATABASE_ERROR' },
    });
  });
});

describe('rate limits', () => {
  test('the unit after the last is 429 with the seconds to wait; health is exempt', async () => {
    const as = `${OWNER}|3`;
    for (const left of ['2', '1', '0']) {
      expect((await api.rest('GET', '/v1/server-time', { as })).headers.get('ratelimit-remaining')).toBe(left);
    }
    const over = await api.rest('GET', '/v1/server-time', { as });
    expect([over.status, over.json]).toEqual([429, { error: 'RATE_LIMIT_EXCEEDED', message: 'Rate limit exceeded' }]);
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await api.rest('GET', '/v1/health', { as })).status).toBe(200);
  });
});

describe('webhooks', () => {
  const deliver = (body: string | Uint8Array<ArrayBuffer>, signature = 'good') =>
    fetch(`${api.url}/v1/webhooks/sample`, {
      method: 'POST',
      body,
      headers: { 'x-signature': signature, 'content-type': 'application/json' },
    });
  test('the body arrives as the bytes that were sent', async () => {
    const answer = await deliver('{"a": 1.50, broken');
    expect([answer.status, await answer.text()]).toEqual([200, '18']);
  });
  test('1 MiB and a byte is 413, at 1 MiB it passes', async () => {
    expect((await deliver(new Uint8Array(1024 * 1024))).status).toBe(200);
    expect((await deliver(new Uint8Array(1024 * 1024 + 1))).status).toBe(413);
  });
  test('what cannot be kept is asked for again', async () => {
    const answer = await deliver('database away');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
  });
});

test('a node without a role answers 404 to its routes', async () => {
  const node = await startSampleApi(database.url, { roles: ['ingest'] });
  try {
    expect((await node.rest('GET', '/v1/notes')).status).toBe(404);
    expect((await node.gql('{__typename}')).status).toBe(404);
    expect((await node.rest('GET', '/v1/schema')).status).toBe(404);
    expect((await node.rest('GET', '/v1/health')).status).toBe(200);
  } finally {
    await node.stop();
  }
});

/** Nobody listens there any more. */
const refused = (url: string): Promise<boolean> =>
  new Promise((done) => {
    const { port, hostname } = new URL(url);
    const socket = connect(Number(port), hostname, () => {
      socket.destroy();
      done(false);
    });
    socket.once('error', () => done(true));
  });
