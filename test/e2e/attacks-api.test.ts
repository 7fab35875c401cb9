import { rawHttp } from '../support/raw-http';
import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';

interface Answer {
  status: number;
  body: any;
  text: string;
  headers: Headers;
}

async function call(base_url: string, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${base_url}${path}`, { redirect: 'manual', ...init });
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  return { status: response.status, body, text, headers: response.headers };
}

/** The flat body of REST: exactly these members, and nothing of our insides. */
function expectFlat(answer: Answer, status: number, code: string): void {
  expect([answer.status, answer.body?.error, answer.text.slice(0, 200)]).toEqual([
    status,
    code,
    answer.text.slice(0, 200),
  ]);
  expect(Object.keys(answer.body).filter((name) => name !== 'details')).toEqual(['error', 'message']);
  expect(answer.body.message).toEqual(expect.stringMatching(/\S/));
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  expect(answer.text).not.toMatch(/node_modules|\bat .*\.(js|ts):\d|SQLSTATE|select |ENOENT/i);
}

describe('a caller with every right and bad input', () => {
  let server: TestServer;
  let api: ApiClient;
  let bearer: Record<string, string>;

  beforeAll(async () => {
    server = await startServer();
    api = new ApiClient(server.base_url, server.credentials.access_token);
    bearer = { authorization: `Bearer ${server.credentials.access_token}` };
  });
  afterAll(() => server?.dispose());

  const get = (path: string) => call(server.base_url, path, { headers: bearer });
  const emit = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    call(server.base_url, '/v1/events/emit', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearer, ...headers },
      body: body as unknown as NonNullable<RequestInit['body']>,
    });
  const gql = (body: unknown, headers: Record<string, string> = {}) =>
    call(server.base_url, '/v1/gql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearer, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const total = async () => (await api.get('/v1/events?limit=1')).body._meta.total as number;

  const good = '"event_type":"twitch:cheer","raw":{"bits":1}';
  const deep = (levels: number) => `{${good},"x":${'['.repeat(levels)}${']'.repeat(levels)}}`;

  test.each<[string, string | Uint8Array, string]>([
    ['no JSON', '{"event_type":', 'BAD_REQUEST'],
    ['JSON with a tail', `{${good}} {}`, 'BAD_REQUEST'],
    ['an array', '[]', 'BAD_REQUEST'],
    ['a text', '"x"', 'BAD_REQUEST'],
    ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'BAD_REQUEST'],
    ['UTF-16', Buffer.from(`{${good}}`, 'utf16le'), 'BAD_REQUEST'],
    ['100,000 levels', deep(100_000), 'BAD_REQUEST'],
    ['65 levels', deep(65), 'BAD_REQUEST'],
    ['no members', '{}', 'VALIDATION_ERROR'],
    ['an empty body', '', 'VALIDATION_ERROR'],
    ['an unknown member', `{${good},"admin":true}`, 'VALIDATION_ERROR'],
    ['__proto__', `{${good},"__proto__":{"admin":true}}`, 'VALIDATION_ERROR'],
    [
      '__proto__ in escapes, deep',
      `{"event_type":"twitch:cheer","raw":{"a":{"\\u005f_proto__":1}}}`,
      'VALIDATION_ERROR',
    ],
    ['constructor', `{${good},"constructor":{"prototype":{}}}`, 'VALIDATION_ERROR'],
    ['a number for a text', '{"event_type":5}', 'VALIDATION_ERROR'],
    ['null for a text', '{"event_type":null}', 'VALIDATION_ERROR'],
    ['a number beyond doubles', '{"event_type":"twitch:cheer","raw":{"n":1e999}}', 'VALIDATION_ERROR'],
    ['an integer that doubles round', '{"event_type":"twitch:cheer","raw":{"n":9007199254740993}}', 'VALIDATION_ERROR'],
    ['NUL', '{"event_type":"twitch:cheer","raw":{"n":"a\\u0000b"}}', 'VALIDATION_ERROR'],
    ['a lone surrogate', '{"event_type":"twitch:cheer","raw":{"n":"\\ud800"}}', 'VALIDATION_ERROR'],
    ['a name too long', `{"event_type":"twitch:${'x'.repeat(100)}"}`, 'VALIDATION_ERROR'],
    ['a raw that is no object', '{"event_type":"twitch:cheer","raw":[]}', 'VALIDATION_ERROR'],
    ['an impossible date', `{${good},"created_at":"2026-02-30T00:00:00Z"}`, 'VALIDATION_ERROR'],
    ['a time to come', `{${good},"created_at":"2999-01-01T00:00:00Z"}`, 'VALIDATION_ERROR'],
  ])('POST /v1/events/emit with %s is 400 and stores nothing', async (_what, body, code) => {
    const before = await total();
    const answer = await emit(body);
    expectFlat(answer, 400, code);
    expect(await total()).toBe(before);
  });

  test('other content types, and bodies too large, are refused before they are read', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/xml',
    ]) {
      expectFlat(await emit(`{${good}}`, { 'content-type': type }), 415, 'BAD_REQUEST');
    }
    expectFlat(await emit(`{${good},"x":"${'x'.repeat(1_100_000)}"}`), 413, 'BAD_REQUEST');
    expect((await emit(`{${good}}`, { 'content-type': 'application/json; charset=utf-8' })).status).toBe(200);
  });

  test.each([
    'page=0',
    'page=-1',
    'page=1.5',
    'page=abc',
    'page=99999999999999999999',
    'page=1e3x',
    'page=1&page=2',
    'limit=0',
    'limit=101',
    'limit=-5',
    'limit=1000000',
    'limit=',
    'from=2026-02-30',
    'from=2026-13-01T00:00:00Z',
    'from=yesterday',
    'to=0000-00-00',
    'from=2026-01-02T25:00:00Z',
    'from=2026-06-02&to=2026-06-01',
    'search=a%00b',
    'types=a%00',
    'types=%00',
    'unknown=1',
    '__proto__=1',
    'types[]=a',
    '__proto__=1&__proto__=2',
    `search=${'x'.repeat(501)}`,
    `user_id=${'9'.repeat(300)}`,
  ])('GET /v1/events?%s is 400', async (query) => {
    expectFlat(await get(`/v1/events?${query}`), 400, 'VALIDATION_ERROR');
  });

  test('odd but allowed filters answer an ordinary page', async () => {
    const injections = ["' or 1=1 --", '%', '_', '\\', '"; drop table outbox;', '\u{1F600}', '$1', '<script>'];
    for (const text of injections) {
      const answer = await get(`/v1/events?search=${encodeURIComponent(text)}&user_id=${encodeURIComponent(text)}`);
      expect([text, answer.status, answer.body.data]).toEqual([text, 200, []]);
    }
    expect((await get('/v1/events?page=1000000000')).body.data).toEqual([]);
  });

  test('paths and methods that do not exist', async () => {
    expectFlat(await get('/v1/nothing'), 404, 'NOT_FOUND');
    expectFlat(await get('/index.html'), 404, 'NOT_FOUND');
    expectFlat(await get('/v1/events/not-an-id'), 400, 'VALIDATION_ERROR');
    expectFlat(await get('/v1/events/00000000-0000-7000-8000-000000000000'), 404, 'NOT_FOUND');
    expectFlat(await get('/v1/events/%00'), 400, 'VALIDATION_ERROR');
    expectFlat(await get('/v1/events/%zz'), 400, 'BAD_REQUEST');
    expectFlat(await get('/v1/../../etc/passwd'), 404, 'NOT_FOUND');
    expectFlat(await get('/v1/swagger-ui/..%2f..%2fpackage.json'), 404, 'NOT_FOUND');
    expectFlat(await get(`/v1/events/${'a'.repeat(600)}`), 414, 'BAD_REQUEST');
    for (const search of ['%ff%fe', '%ED%A0%80', '%C0%80', '%zz']) {
      expectFlat(await get(`/v1/events?search=${search}`), 400, 'BAD_REQUEST');
    }
    expectFlat(await get('/v1/events/'), 404, 'NOT_FOUND');
    for (const [method, path, allow] of [
      ['DELETE', '/v1/events', 'GET, HEAD, OPTIONS'],
      ['GET', '/v1/events/emit', 'OPTIONS, POST'],
      ['GET', '/v1/events/test', 'OPTIONS, POST'],
      ['POST', '/v1/health', 'GET, HEAD, OPTIONS'],
      ['GET', '/v1/gql', 'OPTIONS, POST'],
      ['PUT', '/v1/api-keys', 'GET, HEAD, OPTIONS, POST'],
    ] as const) {
      const answer = await call(server.base_url, path, { method, headers: bearer });
      expectFlat(answer, 405, 'BAD_REQUEST');
      expect([path, answer.headers.get('allow')]).toEqual([path, allow]);
    }
  });

  test('without a credential, with a bad one, and with one of each kind of nonsense', async () => {
    const none = await call(server.base_url, '/v1/events');
    expectFlat(none, 401, 'UNAUTHORIZED');
    expect(none.headers.get('www-authenticate')).toBe('Bearer');
    const tokens = [
      'x',
      'Bearer',
      'null',
      'lm_usr_',
      `lm_usr_${'a'.repeat(5000)}`,
      'eyJhbGciOiJub25lIn0.e30.',
      '\u00ff',
    ];
    for (const token of tokens) {
      const answer = await call(server.base_url, '/v1/events', { headers: { authorization: `Bearer ${token}` } });
      expectFlat(answer, 401, 'UNAUTHORIZED');
      expect([token, answer.body.message, answer.headers.get('www-authenticate')]).toEqual([
        token,
        'Authentication required',
        'Bearer error="invalid_token", error_description="The token is invalid"',
      ]);
      const open = await call(server.base_url, '/v1/.well-known/jwks.json', {
        headers: { authorization: `Bearer ${token}` },
      });
      expect([token, open.status]).toEqual([token, 200]);
    }
  });

  test('what is not HTTP, or too large to be, is answered and the connection ends', async () => {
    const raw = (text: string) => rawHttp(server.base_url, text);
    const headers = (count: number, size: number) =>
      Array.from({ length: count }, (_, at) => `x-${at}: ${'v'.repeat(size)}\r\n`).join('');
    expect(await raw(`GET /v1/health HTTP/1.1\r\nhost: x\r\n${headers(1, 20_000)}\r\n`)).toMatch(/^HTTP\/1.1 431 /);
    expect(await raw(`GET /v1/health HTTP/1.1\r\nhost: x\r\n${headers(3000, 4)}\r\n`)).toMatch(/^HTTP\/1.1 431 /);
    const broken = await raw('NONSENSE\r\n\r\n');
    expect(broken).toMatch(/^HTTP\/1.1 400 /);
    expect(broken).toContain('{"error":"BAD_REQUEST","message":"The request is malformed"}');
    const smuggled =
      'POST /v1/events/emit HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n';
    expect(await raw(smuggled)).toMatch(/^HTTP\/1.1 400 /);
    const hostless = await raw('GET /v1/health HTTP/1.1\r\n\r\n');
    expect(hostless).toMatch(/^HTTP\/1.1 400 /);
    expect(hostless).toContain('{"error":"BAD_REQUEST","message":"The Host header is missing"}');
    const upgrade =
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
    const two_hosts = await raw(`GET /v1/ws HTTP/1.1\r\nhost: x\r\nhost: y\r\n${upgrade}\r\n`);
    expect(two_hosts).toMatch(/^HTTP\/1.1 400 /);
    expect(two_hosts).toContain('{"error":"BAD_REQUEST","message":"More than one Host header"}');
    expect((await get('/v1/health')).status).toBe(200);
  });

  describe('GraphQL', () => {
    const errors = (answer: Answer, code: string): void => {
      expect([answer.body?.errors?.[0]?.extensions?.code, answer.text.slice(0, 300)]).toEqual([
        code,
        answer.text.slice(0, 300),
      ]);
      expect(answer.body.data ?? null).toBeNull();
      expect(answer.text).not.toMatch(/stacktrace|node_modules/);
    };

    test.each<[string, unknown, string]>([
      ['no JSON', '{"query":', 'BAD_REQUEST'],
      ['an array', [{ query: '{ __typename }' }], 'BAD_REQUEST'],
      ['no query', {}, 'BAD_REQUEST'],
      ['a query that is no text', { query: 5 }, 'BAD_REQUEST'],
      ['variables that are a text', { query: '{ __typename }', variables: '{}' }, 'BAD_REQUEST'],
      ['no GraphQL', { query: '{ events' }, 'BAD_REQUEST'],
      ['two operations and no name', { query: 'query a { __typename } query b { __typename }' }, 'BAD_REQUEST'],
      ['an operation that is not there', { query: 'query a { __typename }', operationName: 'b' }, 'BAD_REQUEST'],
      ['a subscription', { query: 'subscription { events }' }, 'VALIDATION_ERROR'],
      ['an unknown field', { query: '{ nothing }' }, 'VALIDATION_ERROR'],
      [
        '31 aliases',
        { query: `{ ${Array.from({ length: 31 }, (_, i) => `a${i}: __typename`).join(' ')} }` },
        'BAD_REQUEST',
      ],
      [
        '10,000 aliases',
        { query: `{ ${Array.from({ length: 10_000 }, (_, i) => `a${i}: __typename`).join(' ')} }` },
        'BAD_REQUEST',
      ],
      ['500 equal fields', { query: `{ ${'__typename '.repeat(500)} }` }, 'BAD_REQUEST'],
      [
        'a fragment of itself',
        { query: '{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }' },
        'BAD_REQUEST',
      ],
      [
        'fragments that double 30 times',
        {
          query: `{ ...f0 } ${Array.from({ length: 30 }, (_, i) => `fragment f${i} on Query { ...f${i + 1} ...f${i + 1} }`).join(' ')} fragment f30 on Query { __typename }`,
        },
        'BAD_REQUEST',
      ],
      [
        'depth',
        { query: `{ __schema { types ${'{ fields { type '.repeat(10)} { name } ${'} }'.repeat(10)} } }` },
        'BAD_REQUEST',
      ],
      ['a page of 0', { query: '{ events(filter: {page: 0}) { total } }' }, 'VALIDATION_ERROR'],
      ['a limit of 101', { query: '{ events(filter: {limit: 101}) { total } }' }, 'VALIDATION_ERROR'],
      ['an impossible date', { query: '{ events(filter: {from: "2026-02-30"}) { total } }' }, 'VALIDATION_ERROR'],
      ['NUL', { query: '{ events(filter: {search: "a\\u0000"}) { total } }' }, 'VALIDATION_ERROR'],
      ['an Int beyond 32 bits', { query: '{ events(filter: {page: 99999999999}) { total } }' }, 'VALIDATION_ERROR'],
      ['an unknown input member', { query: '{ events(filter: {admin: true}) { total } }' }, 'VALIDATION_ERROR'],
      [
        'a variable of another type',
        { query: 'query($p: Int) { events(filter: {page: $p}) { total } }', variables: { p: 'x' } },
        'VALIDATION_ERROR',
      ],
    ])('%s is refused', async (_what, body, code) => {
      const before = await total();
      const answer = await gql(body);
      errors(answer, code);
      expect(await total()).toBe(before);
    });

    test('the same fault has the same code and message on both protocols', async () => {
      const pairs: [string, string][] = [
        ['/v1/events?page=0', '{ events(filter: {page: 0}) { total } }'],
        ['/v1/events?limit=101', '{ events(filter: {limit: 101}) { total } }'],
        ['/v1/events?from=2026-02-30', '{ events(filter: {from: "2026-02-30"}) { total } }'],
        [
          '/v1/events?from=2026-06-02&to=2026-06-01',
          '{ events(filter: {from: "2026-06-02", to: "2026-06-01"}) { total } }',
        ],
        [
          '/v1/events/00000000-0000-7000-8000-000000000000',
          '{ event(id: "00000000-0000-7000-8000-000000000000") { id } }',
        ],
      ];
      for (const [path, query] of pairs) {
        const rest = await get(path);
        const { errors: found } = (await gql({ query })).body;
        expect([path, found[0].extensions.code, found[0].message]).toEqual([path, rest.body.error, rest.body.message]);
      }
    });

    test('the abuse set is refused, and the server goes on serving', async () => {
      const query = `{ ${Array.from({ length: 900 }, (_, i) => `a${i}: events { items { id } }`).join(' ')} }`;
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => gql({ query: `${query} # ${i}` })));
      expect(answers.every((answer) => answer.body.errors[0].extensions.code === 'BAD_REQUEST')).toBe(true);
      expect((await get('/v1/health')).status).toBe(200);
      expect((await gql({ query: '{ __typename }' })).body).toEqual({ data: { __typename: 'Query' } });
    });
  });
});
