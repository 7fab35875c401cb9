import { z } from 'zod';
import { command, feature, permission, post } from '../../app/operation';
import { callerOf, serveDeclared, type DeclaredApi } from '../support/declared-api';

/** Operations with a limit of their own: counted alike on both protocols, and nothing runs beyond it. */
let ran = 0;
const limited = (name: string, path: string, per_minute?: number) =>
  command({
    name,
    summary: 'Counts',
    rest: post(path, { envelope: 'bare' }),
    ...(per_minute !== undefined && { per_minute }),
    guard: [feature('feature:notes'), permission('notes:edit')],
    input: z.object({}),
    output: z.object({ n: z.int() }).meta({ id: 'Counted' }),
    run: async () => ({ n: ++ran }),
  });
const operations = [limited('roll', '/v1/roll', 3), limited('spin', '/v1/spin', 3), limited('free', '/v1/free')];
const notes = new Set(['notes:edit']);
const who = (rate_bucket: string, rest = {}) =>
  callerOf({ permissions: notes, account_id: 'a', rate_bucket, rate_limit: 100, ...rest });

let api: DeclaredApi;
beforeEach(async () => {
  ran = 0;
  api = await serveDeclared(
    operations,
    {},
    {
      ada: who('ada'),
      bob: who('bob'),
      system: who('system', { kind: 'system_key', rate_limit: null }),
    },
  );
});
afterEach(() => api.close());

const roll = (as?: string) => api.rest('POST', '/v1/roll', { as });
const limits = (headers: Headers) => [headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')];

test('REST: the fourth call of a minute is refused, of that caller and operation alone', async () => {
  for (const left of ['99', '98', '97']) {
    const { status, headers } = await roll();
    expect([status, ...limits(headers)]).toEqual([200, '100', left]);
  }
  const refused = await roll();
  expect([refused.status, ...limits(refused.headers)]).toEqual([429, '3', '0']);
  expect(refused.json).toEqual({ error: 'RATE_LIMIT_EXCEEDED', message: 'Rate limit exceeded' });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(ran).toBe(3);
  expect((await roll('bob')).status).toBe(200);
  expect((await api.rest('POST', '/v1/spin')).status).toBe(200);
  expect((await api.rest('POST', '/v1/free')).status).toBe(200);
});

test.each([
  ['aliases', 'mutation { a: roll { n } b: roll { n } c: roll { n } d: roll { n } }'],
  [
    'fragments',
    'mutation { ...f ... { c: roll { n } } ... on Mutation { ...g } } fragment f on Mutation { a: roll { n } b: roll { n } } fragment g on Mutation { d: roll { n } spin { n } }',
  ],
])('GraphQL counts %s, and refuses the whole request before anything ran', async (_what, document) => {
  const refused = await api.gql(document);
  expect([refused.status, ...limits(refused.headers)]).toEqual([429, '3', '0']);
  expect(refused.json.errors).toMatchObject([
    {
      message: 'Rate limit exceeded',
      extensions: { code: 'RATE_LIMIT_EXCEEDED', retry_after_seconds: expect.any(Number) },
    },
  ]);
  expect(ran).toBe(0);
});

test('both protocols share the bucket', async () => {
  expect((await api.gql('mutation { a: roll { n } b: roll { n } }')).json.data).toEqual({ a: { n: 1 }, b: { n: 2 } });
  expect((await roll()).status).toBe(200);
  expect((await roll()).status).toBe(429);
  expect((await api.gql('mutation { roll { n } }')).status).toBe(429);
  // More often than it takes to have the document compiled.
  for (let n = 0; n < 5; n += 1) expect((await api.gql('mutation { roll { n } }')).status).toBe(429);
  expect(ran).toBe(3);
});

test('a credential without a limit has none here', async () => {
  for (let n = 0; n < 5; n += 1) expect((await roll('system')).status).toBe(200);
});

test('OpenAPI says it', async () => {
  const { json } = await api.rest('GET', '/v1/openapi.json');
  expect(json.paths['/v1/roll'].post).toMatchObject({
    'x-per-minute': 3,
    description: expect.stringContaining('At most 3 calls a minute and caller.'),
  });
  expect(json.paths['/v1/free'].post).not.toHaveProperty('x-per-minute');
});
