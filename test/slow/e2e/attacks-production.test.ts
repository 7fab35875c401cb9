import { createHash, randomBytes } from 'node:crypto';
import { startServer, type TestServer } from '../../support/server';

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

describe('in production', () => {
  let server: TestServer;
  const system_key = `lm_sys_${randomBytes(24).toString('hex')}`;

  beforeAll(async () => {
    server = await startServer({
      env: {
        LUMIO_ENV: 'production',
        LUMIO_AUTH__SYSTEM_KEYS: `${createHash('sha256').update(system_key).digest('hex')}=*`,
      },
    });
  });
  afterAll(() => server?.dispose());

  const post = (body: unknown, type = 'application/json') =>
    call(server.base_url, '/v1/gql', {
      method: 'POST',
      headers: { 'content-type': type },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const refusedWhole = (answer: Answer, errors?: number): void => {
    expect(answer.body.errors.length).toBeGreaterThan(0);
    // Auditing tools take one error for each of many equal mistakes as a sign that all were worked through.
    if (errors !== undefined) expect(answer.body.errors).toHaveLength(errors);
    expect(answer.body.data ?? null).toBeNull();
  };
  const introspection = '{ __schema { types { name fields { name } } } }';

  test('there are no development credentials, no explorers, no documents', async () => {
    expect(() => server.credentials).toThrow(/no development credentials/);
    for (const path of [
      '/v1/graphiql',
      '/v1/swagger-ui/',
      '/v1/swagger-ui',
      '/v1/swagger-ui/swagger-ui.css',
      '/v1/openapi.json',
      '/v1/api-doc/openapi.json',
      '/graphiql',
      '/graphql',
      '/playground',
      '/metrics',
    ]) {
      expectFlat(await call(server.base_url, path), 404, 'NOT_FOUND');
    }
    expect((await call(server.base_url, '/v1/health')).status).toBe(200);
  });

  test('answers carry the headers that browsers heed, and nothing about what runs here', async () => {
    const { headers } = await call(server.base_url, '/v1/health');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect([headers.get('server'), headers.get('x-powered-by')]).toEqual([null, null]);
  });

  // The twelve probes of a well-known GraphQL auditing tool, each of which must come back negative.
  test('probe: introspection, plain and circular', async () => {
    refusedWhole(await post({ query: introspection }));
    const circular = `{ __schema { types { fields { type { fields { type { fields { type { name } } } } } } } } }`;
    refusedWhole(await post({ query: circular }));
    refusedWhole(await post({ query: '{ __type(name: "Query") { name } }' }));
  });
  test('probe: field suggestions', async () => {
    for (const query of [
      '{ event(id: "x") { idd } }',
      '{ evens { total } }',
      '{ __schema { directive } }',
      'query($a: Strin) { __typename }',
    ]) {
      const answer = await post({ query });
      refusedWhole(answer);
      expect(answer.text).not.toMatch(/did you mean/i);
    }
  });
  test('probe: GraphiQL', async () => {
    for (const path of ['/', '/v1/gql', '/graphiql', '/v1/graphiql', '/playground', '/console']) {
      const answer = await call(server.base_url, path, { headers: { accept: 'text/html' } });
      expect([path, answer.status]).toEqual([path, path === '/v1/gql' ? 405 : 404]);
      expect(answer.text).not.toMatch(/graphiql|playground|<html/i);
    }
  });
  test('probe: GET queries and GET mutations', async () => {
    for (const query of ['query cop{__typename}', 'mutation cop {__typename}', '{events{total}}']) {
      const answer = await call(server.base_url, `/v1/gql?query=${encodeURIComponent(query)}`);
      expectFlat(answer, 405, 'BAD_REQUEST');
    }
  });
  test('probe: POST as a form', async () => {
    const answer = await post('query=query%20cop%20%7B__typename%7D', 'application/x-www-form-urlencoded');
    expect(answer.status).toBe(415);
    expect(answer.body.data).toBeUndefined();
    const plain = await post('{"query":"{__typename}"}', 'text/plain');
    expect(plain.status).toBe(415);
  });
  test('probe: tracing', async () => {
    const answer = await call(server.base_url, '/v1/gql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'apollo-federation-include-trace': 'ftv1', 'apollo-tracing': '1' },
      body: '{"query":"query cop { __typename }"}',
    });
    expect(answer.body).toEqual({ data: { __typename: 'Query' } });
  });
  test('probe: alias overloading', async () => {
    refusedWhole(
      await post({ query: `query cop { ${Array.from({ length: 101 }, (_, i) => `alias${i}:__typename`).join(' ')} }` }),
      1,
    );
  });
  test('probe: field duplication', async () => {
    refusedWhole(await post({ query: `query cop { ${'__typename\n'.repeat(500)} }` }), 1);
  });
  test('probe: directive overloading', async () => {
    refusedWhole(await post({ query: `query cop { __typename ${'@aa'.repeat(10)} }` }), 1);
    refusedWhole(await post({ query: `query cop { __typename ${'@include(if: true) '.repeat(50)} }` }), 1);
  });
  test('probe: batched queries', async () => {
    const answer = await post(Array.from({ length: 10 }, () => ({ query: 'query cop { __typename }' })));
    expect(Array.isArray(answer.body)).toBe(false);
    refusedWhole(answer);
  });
  test('persisted queries cannot be registered by anyone', async () => {
    const query = '{ __typename }';
    const persistedQuery = { version: 1, sha256Hash: createHash('sha256').update(query).digest('hex') };
    await post({ query, extensions: { persistedQuery } });
    refusedWhole(await post({ extensions: { persistedQuery } }));
  });
});
