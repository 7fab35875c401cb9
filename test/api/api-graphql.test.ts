import { buildClientSchema, buildSchema, getIntrospectionQuery, GraphQLError, printSchema } from 'graphql';
import type { RequestContext } from '../../access/authentication/caller';
import { createAnswers } from '../../api/graphql/answers';
import { createDocuments } from '../../api/graphql/compiled/documents';
import { DEFAULT_LIMITS } from '../../api/graphql/limits/limits';
import { attachContext } from '../../api/http/requests/request-state';
import { serviceContext } from '../../app/service-calls';
import { type ApiProcess, OWNER, startSampleApi } from '../support/api-process';
import { type TestDatabase, testDatabase } from '../support/database';
import { timeLimit } from '../support/patience';

const ID = '0197f3a0-0000-7000-8000-000000000001';
/** The same documents are measured here as well: the CPU of another process cannot be told apart by request. */
const sameSchema = buildSchema('type Query { serverTime: ServerTime! } type ServerTime { time: String! }');
let database: TestDatabase;
let api: ApiProcess;
let open: ApiProcess;
beforeAll(async () => {
  database = await testDatabase(2);
  [api, open] = await Promise.all([
    startSampleApi(database.url),
    startSampleApi(database.url, { graphql: { playground: true }, docs: { swagger_ui: true, openapi_json: true } }),
  ]);
});
afterAll(async () => {
  await Promise.all([api.stop(), open.stop()]);
  await database.drop();
});

test('a list with everything in it, interpreted and compiled alike', async () => {
  const query = `query q($n: Int) { notes(filter: {limit: $n, types: ["x"]}) {
    total pages items { id noteText mood noteType sizeBytes raw tags { tagName weight } createdAt } } }`;
  const answers = [];
  for (let i = 0; i < 5; i += 1) answers.push((await api.gql(query, { variables: { n: 1 } })).text);
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]).toContain('"raw":{"id": 820982911946154508,  "b":1.50}');
  expect(JSON.parse(answers[0]!).data.notes.items[0]).toMatchObject({
    mood: 'VERY_GOOD',
    noteType: 'kick:follower',
    sizeBytes: 5_000_000_000,
    tags: [{ tagName: 'a', weight: 1.5 }],
  });
});

test('mutations take input, flat arguments and null', async () => {
  const made = await api.gql(
    'mutation { createNote(input: {noteText: "hi", mood: BAD, raw: {a: [1, "x"]}}) { mood raw } }',
  );
  expect(made.json.data.createNote).toEqual({ mood: 'BAD', raw: { a: [1, 'x'], seed: null } });
  const changed = await api.gql(`mutation { updateNote(id: "${ID}", input: {noteText: null}) { id noteText } }`);
  expect(changed.json.data.updateNote).toEqual({ id: ID, noteText: 'null' });
});

test.each([
  ['a wrong id', 'query q($id: UUID!) { note(id: $id) { id } }', { id: 'zz' }, 'VALIDATION_ERROR', 'id: Invalid UUID'],
  [
    'another type',
    'query q($id: UUID!) { note(id: $id) { id } }',
    { id: 5 },
    'VALIDATION_ERROR',
    /UUID must be a text/,
  ],
  [
    'what is not there',
    'query q($id: UUID!) { note(id: $id) { id } }',
    { id: ID.replace('1', '2') },
    'NOT_FOUND',
    'Note not found',
  ],
])(
  '%s is refused with the words of REST, interpreted and compiled alike',
  async (_what, query, variables, code, message) => {
    const answers = [];
    for (let i = 0; i < 5; i += 1) answers.push(await api.gql(query, { variables }));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers[0]!.json.errors[0].extensions.code).toBe(code);
    expect(answers[0]!.json.errors[0].message).toMatch(message);
  },
);

test('one root field that is refused leaves the others alone when it may be null, and names its path', async () => {
  const { json } = await api.gql('{ time: serverTime { time } }', { as: '' });
  expect(json).toEqual({ data: { time: { time: '2026-01-02T03:04:05Z' } } });
});

describe('the transport', () => {
  const raw = async (init: RequestInit, path = '/v1/gql') => {
    const response = await fetch(api.url + path, init);
    return { status: response.status, text: await response.text() };
  };
  test('batches, GET, forms, texts and broken JSON are refused', async () => {
    const json = { 'content-type': 'application/json' };
    expect(await raw({ method: 'POST', headers: json, body: '[{"query":"{__typename}"}]' })).toMatchObject({
      status: 400,
    });
    expect(await raw({}, '/v1/gql?query={__typename}')).toMatchObject({ status: 405 });
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(await raw({ method: 'POST', headers: form, body: 'query={__typename}' })).toMatchObject({ status: 415 });
    expect(
      await raw({ method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{"query":"{__typename}"}' }),
    ).toMatchObject({ status: 415 });
    const broken = await raw({ method: 'POST', headers: json, body: '{"query":' });
    expect(JSON.parse(broken.text).errors[0].extensions.code).toBe('BAD_REQUEST');
  });
  test('a request costs a unit per root field, aliases counted', async () => {
    const as = `${OWNER}|5`;
    expect(
      (
        await api.gql(
          '{ a: serverTime { time } b: serverTime { time } ...f } fragment f on Query { serverTime { time } }',
          { as },
        )
      ).headers.get('ratelimit-remaining'),
    ).toBe('2');
    const over = await api.gql('{ a: serverTime { time } b: serverTime { time } c: serverTime { time } }', { as });
    expect(over.status).toBe(429);
    expect(over.json).toEqual({
      errors: [
        {
          message: 'Rate limit exceeded',
          extensions: { code: 'RATE_LIMIT_EXCEEDED', retry_after_seconds: Number(over.headers.get('retry-after')) },
        },
      ],
    });
  });
});

describe('what the limits refuse, each in under 50 ms of CPU', () => {
  const repeat = (n: number, line: (i: number) => string) => Array.from({ length: n }, (_, i) => line(i)).join(' ');
  const bomb = `query { ...f0 } ${repeat(40, (i) => `fragment f${i} on Query { ...f${i + 1} ...f${i + 1} }`)} fragment f40 on Query { serverTime { time } }`;
  const circular =
    '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }';
  test.each<[string, string, RegExp]>([
    ['10,000 aliases', `{ ${repeat(10_000, (i) => `a${i}: __typename`)} }`, /token|aliases|root fields/i],
    ['100 aliases', `{ serverTime { ${repeat(100, (i) => `a${i}: time`)} } }`, /aliases/],
    [
      'aliases in fragments',
      `{ ${repeat(5, () => 'serverTime { ...f }')} } fragment f on ServerTime { ${repeat(10, (i) => `a${i}: time`)} }`,
      /aliases/,
    ],
    ['root fields', `{ ${repeat(21, () => 'serverTime { time }')} }`, /root fields/],
    ['500 times one field', `{ ${repeat(500, () => '__typename')} }`, /root fields/],
    ['directives', `{ serverTime { time ${repeat(30, () => '@include(if: true)')} } }`, /directives/],
    ['unknown directives', `{ __typename ${repeat(10, () => '@aa')} }`, /Unknown directive/],
    ['an exponential spread', bomb, /too many|too complex/],
    [
      'a fragment that spreads itself',
      '{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }',
      /spreads itself/,
    ],
    ['a circular introspection', circular, /lists inside lists/],
    [
      'depth through fragments',
      `{ ...d0 } ${repeat(20, (i) => `fragment d${i} on Query { serverTime { ... on ServerTime { time } } ...d${i + 1} }`)} fragment d20 on Query { x { x { x { x { x { x { x { x { x { x { x { x { x { x { x { x { y } } } } } } } } } } } } } } } } }`,
      /deeply|root fields/,
    ],
  ])('%s', async (_what, query, message) => {
    const answer = await open.gql(query);
    expect(answer.status).toBe(400);
    for (const error of answer.json.errors) expect(error.message).toMatch(message);
    // The best of three: garbage of others is collected at times.
    const took = [1, 2, 3].map(() => {
      const documents = createDocuments(sameSchema, DEFAULT_LIMITS, { introspection: true });
      documents.prepare('{ serverTime { time } }');
      const before = process.cpuUsage();
      expect(documents.prepare(query).refusal?.reasons[0]!.message).toMatch(message);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    });
    expect(Math.min(...took)).toBeLessThan(timeLimit(50));
  });
  test('fields inside lists count for more', async () => {
    const leaves = repeat(900, () => 'tagName');
    const { json } = await open.gql(`{ a: notes { items { tags { ${leaves} } } } }`);
    expect(json.errors[0].message).toMatch(/complex/);
  });
});

describe('the explorer and what belongs to it', () => {
  const introspection =
    '{ __schema { types { name fields { name args { name type { name ofType { name ofType { name } } } } } } } }';
  test('are off by default', async () => {
    expect((await api.gql(introspection)).json.errors[0].extensions.code).toBe('VALIDATION_ERROR');
    expect((await api.gql('{ servrTime { time } }')).text).not.toContain('Did you mean');
    for (const path of ['/v1/graphiql', '/v1/swagger-ui/', '/v1/openapi.json', '/v1/api-doc/openapi.json']) {
      expect([path, (await api.rest('GET', path)).status]).toEqual([path, 404]);
    }
  });
  test('what explorers and code generators ask first is answered', async () => {
    const whole = {
      inputValueDeprecation: true,
      schemaDescription: true,
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      oneOf: true,
    };
    const { status, json } = await open.gql(getIntrospectionQuery(whole));
    expect([status, json.errors]).toEqual([200, undefined]);
    expect(printSchema(buildClientSchema(json.data))).toContain('type Query');
  });
  test('are on with the playground, and ask no other host for anything', async () => {
    expect((await open.gql(introspection)).json.data.__schema.types.length).toBeGreaterThan(5);
    const page = await open.rest('GET', '/v1/graphiql');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).toContain("connect-src 'self'");
    expect(page.text).not.toMatch(/<(script|link)[^>]+(src|href)="https?:/);
  });
  test('Swagger UI is served from here under a strict policy', async () => {
    const page = await open.rest('GET', '/v1/swagger-ui/');
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    for (const [, asset] of page.text.matchAll(/(?:src|href)="\.\/([^"]+)"/g)) {
      expect([asset, (await open.rest('GET', `/v1/swagger-ui/${asset}`)).status]).toEqual([asset, 200]);
    }
    expect((await open.rest('GET', '/v1/swagger-ui/package.json')).status).toBe(404);
  });
});

test('the SDL is served, with guards in the descriptions', async () => {
  const { text } = await api.rest('GET', '/v1/schema', { as: '' });
  expect(text).toContain('notes(filter: NoteFilterInput): PaginatedNoteResult!');
  expect(text).toContain('Needs: feature:notes, notes:read');
});

test('the OpenAPI document names permission, feature, errors and schemas, and every reference resolves', async () => {
  const { json } = await open.rest('GET', '/v1/openapi.json');
  expect(json.openapi).toBe('3.1.0');
  expect(json.paths['/v1/notes'].get).toMatchObject({ 'x-permission': 'notes:read', 'x-feature': 'feature:notes' });
  expect(json.paths['/v1/notes'].post.requestBody.content['application/json'].schema.required).toEqual(['note_text']);
  expect(Object.keys(json.paths['/v1/notes/{id}'].get.responses)).toEqual([
    '200',
    '400',
    '401',
    '403',
    '404',
    '429',
    '431',
    '500',
    '503',
  ]);
  const references = [...JSON.stringify(json).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
    (match) => match[1]!,
  );
  expect(references.length).toBeGreaterThan(5);
  for (const name of references) expect(json.components.schemas).toHaveProperty(name);
  const ids = Object.values<Record<string, { operationId: string }>>(json.paths).flatMap((path) =>
    Object.values(path).map((one) => one.operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  expect(JSON.stringify(json)).not.toContain('$defs');
});

test('fields of one request that fail for a hidden cause are one line, each with its answer', () => {
  const lines: unknown[] = [];
  const answers = createAnswers((_error, _failure, { facts }) => lines.push(facts));
  const fieldOf = (context: RequestContext, name: string) => {
    const cause = new Error(`the cause of ${name}`);
    attachContext(cause, context);
    return new GraphQLError('field', { originalError: cause, path: [name] });
  };
  const [one, other] = [serviceContext(), serviceContext()];
  const errors = [fieldOf(one, 'a'), fieldOf(one, 'b'), fieldOf(other, 'c')];
  const { errors: shown } = JSON.parse(answers.textOf({ data: {}, errors })) as { errors: unknown[] };
  expect(shown).toHaveLength(3);
  expect(lines).toMatchObject([{ path: ['a'] }, { path: ['c'] }]);
});
