import fc from 'fast-check';
import { buildSchema, OverlappingFieldsCanBeMergedRule, parse, validate } from 'graphql';
import { createDocuments, type ReadyDocument } from '../../api/graphql/compiled/documents';
import { createExecutor } from '../../api/graphql/compiled/executor';
import { DEFAULT_LIMITS } from '../../api/graphql/limits/limits';
import { overlappingFields } from '../../api/graphql/limits/overlapping-fields';
import { type ApiProcess, OWNER, sampleApiOfFile } from '../support/api-process';
import { graphqlSample, sampleState } from '../support/graphql-sample';

let api: ApiProcess;
sampleApiOfFile((one) => (api = one), 1);

const send = (body: unknown, as = OWNER) => api.rest('POST', '/v1/gql', { as, body });

describe('counting', () => {
  test('what is wrong with a request is counted before it is looked at', async () => {
    const bodies = ['{"query":', '[]', { query: '{' }, { query: 5 }, { query: '{ nothing }' }];
    const statuses = [];
    for (let i = 0; i < 12; i += 1) statuses.push((await send(bodies[i % bodies.length], `${OWNER}|10`)).status);
    expect(statuses).toEqual([...Array<number>(10).fill(400), 429, 429]);
  });

  test('200 malformed bodies end in 429', async () => {
    const statuses = [];
    for (let i = 0; i < 200; i += 1) statuses.push((await send('{"query":', `${OWNER}|120`)).status);
    expect([statuses[119], statuses[120], statuses[199]]).toEqual([400, 429, 429]);
  });

  test('an empty operationName is none: it costs what runs', async () => {
    const query = `{ ${Array.from({ length: 20 }, (_, i) => `a${i}: serverTime { time }`).join(' ')} }`;
    const answer = await send({ query, operationName: '' }, `${OWNER}|30`);
    expect([answer.status, answer.headers.get('ratelimit-remaining')]).toEqual([200, '10']);
    expect(Object.keys(answer.json.data)).toHaveLength(20);
    expect((await send({ query, operationName: '' }, `${OWNER}|30`)).status).toBe(429);
  });

  test('a name has at most 255 characters', async () => {
    const name = 'n'.repeat(255);
    const query = `query ${name} { serverTime { time } }`;
    expect((await send({ query, operationName: name })).status).toBe(200);
    const { status, json } = await send({ query, operationName: `${name}n` });
    expect([status, json.errors[0].message]).toEqual([400, 'operationName: must have at most 255 characters']);
  });
});

describe('values written into a document follow the rules for JSON bodies, with the same words', () => {
  const nested = (levels: number, inner = '1') => '['.repeat(levels) + inner + ']'.repeat(levels);
  test.each<[string, string, string]>([
    ['too many levels', `{a: ${nested(80)}}`, `{"a":${nested(80)}}`],
    ['1,900 levels', `{a: ${nested(1900)}}`, `{"a":${nested(1900)}}`],
    ['a prototype', '{__proto__: {a: 1}}', '{"__proto__":{"a":1}}'],
    ['a constructor', '{a: [{constructor: 1}]}', '{"a":[{"constructor":1}]}'],
    ['a large integer', '{a: 9007199254740993}', '{"a":9007199254740993}'],
    ['a small one', '{a: -9007199254740993}', '{"a":-9007199254740993}'],
    ['a number beyond all', '{a: 1e400}', '{"a":1e400}'],
    ['NUL', '{a: "x\\u0000"}', '{"a":"x\\u0000"}'],
  ])('%s', async (_what, literal, json) => {
    const before = await made();
    const rest = await api.rest('POST', '/v1/notes', { body: `{"note_text":"x","raw":${json}}` });
    const graphql = await send({ query: `mutation { createNote(input: {noteText: "x", raw: ${literal}}) { id } }` });
    const [error] = graphql.json.errors;
    expect([graphql.status, error.extensions.code, error.message]).toEqual([
      rest.status,
      rest.json.error,
      rest.json.message,
    ]);
    expect(error.locations).toHaveLength(1);
    expect(await made()).toBe(before + 1);
  });

  test('what both allow arrives', async () => {
    const raw = '{a: [9007199254740991, 1e300, 0.1], b: {proto: null}}';
    const { json } = await send({
      query: `mutation { createNote(input: {noteText: "x", raw: ${raw}}) { raw } }`,
    });
    expect(json.data.createNote.raw).toEqual({ a: [9007199254740991, 1e300, 0.1], b: { proto: null }, seed: null });
  });

  test('a deep variable inside a deep literal is judged as one value', async () => {
    const variables = { v: JSON.parse(nested(40)) as unknown };
    const query = (levels: number) =>
      `mutation($v: JSON) { createNote(input: {noteText: "x", raw: {a: ${nested(levels, '$v')}}}) { id } }`;
    for (let call = 0; call < 4; call += 1) {
      expect((await send({ query: query(20), variables })).json.errors).toBeUndefined();
      const { errors } = (await send({ query: query(30), variables })).json;
      expect([errors[0].extensions.code, errors[0].message]).toEqual([
        'BAD_REQUEST',
        'The request body is nested deeper than 64 levels',
      ]);
    }
  });

  /** Notes made so far, and one more. */
  const made = async () => {
    const { json } = await api.rest('POST', '/v1/notes', { body: { note_text: 'n' } });
    return Number(json.data.note_text.split(' ')[1]);
  };
});

describe('refusals', () => {
  test('every error of a document is told with its places', async () => {
    const { status, json } = await send({
      query: '{\n  nothing\n  serverTime { time wrong }\n  notes(filter: {limit: "x"}) { total }\n}',
    });
    expect(status).toBe(400);
    const shown = json.errors.map(({ message, locations, extensions }: any) => [message, locations, extensions.code]);
    expect(shown).toEqual([
      ['Cannot query field "nothing" on type "Query".', [{ line: 2, column: 3 }], 'VALIDATION_ERROR'],
      ['Cannot query field "wrong" on type "ServerTime".', [{ line: 3, column: 21 }], 'VALIDATION_ERROR'],
      ['Int cannot represent non-integer value: "x"', [{ line: 4, column: 25 }], 'VALIDATION_ERROR'],
    ]);
  });

  test.each<[string, unknown, [number, number]]>([
    ['a syntax error', { query: '{ serverTime\n { time ' }, [2, 9]],
    ['a limit', { query: `{ serverTime { time } }\nquery b { ${'serverTime { time } '.repeat(21)} }` }, [2, 1]],
    [
      'variables that do not fit',
      { query: 'query(\n$n: Int) { notes(filter: {limit: $n}) { total } }', variables: { n: 'x' } },
      [2, 1],
    ],
    ['a field that fails', { query: '{\n note(id: "zz") { id } }' }, [2, 2]],
  ])('%s names its place, the first time and the fourth', async (_what, body, [line, column]) => {
    const texts = [];
    for (let call = 0; call < 4; call += 1) texts.push((await send(body)).text);
    expect(JSON.parse(texts[0]!).errors[0].locations).toEqual([{ line, column }]);
    expect(new Set(texts).size).toBe(1);
  });

  test('an error does not repeat a megabyte', async () => {
    const { text } = await send({ query: `{ ${'n'.repeat(500_000)} }` });
    expect(text.length).toBeLessThan(2000);
  });

  test('persisted queries are refused in words, and with the code that makes clients send the text', async () => {
    const persistedQuery = { version: 1, sha256Hash: 'a'.repeat(64) };
    for (const query of [undefined, '{ serverTime { time } }']) {
      const { status, json } = await send({ query, extensions: { persistedQuery } });
      expect([status, json.errors]).toEqual([
        400,
        [
          {
            message: 'Persisted queries are not supported: send the whole document as query',
            extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' },
          },
        ],
      ]);
    }
    expect((await send({ query: '{ serverTime { time } }', extensions: { other: 1 } })).status).toBe(200);
  });

  test('subscriptions are refused with where to go', async () => {
    const { status, json } = await send({ query: 'subscription { events }' });
    expect([status, json.errors[0].message]).toEqual([
      400,
      'Subscriptions are not offered in GraphQL: subscribe to channels on the WebSocket at /v1/ws',
    ]);
  });
});

test('a variable inside a literal of the JSON scalar is stored on every call', async () => {
  const query = 'mutation($n: String!) { createNote(input: {noteText: "x", raw: {user: {name: $n}}}) { raw } }';
  const raws = [];
  for (let call = 0; call < 5; call += 1) {
    raws.push((await send({ query, variables: { n: `ada ${call}` } })).json.data.createNote.raw.user.name);
  }
  expect(raws).toEqual(['ada 0', 'ada 1', 'ada 2', 'ada 3', 'ada 4']);
});

describe('fields that overlap', () => {
  const schema = buildSchema(`
    type Query { a(x: Int, y: JSON): Query b: Query c: String d: [Query!]! other: Other } type Other { a: Other c: String }
    scalar JSON
  `);
  const selection = (max: number): fc.Arbitrary<string> =>
    fc.letrec<{ set: string; field: string }>((tie) => ({
      field: fc.oneof(
        { maxDepth: max, depthIdentifier: 'field' },
        fc.constantFrom('c', 'a: c', 'b: c', 'c: __typename', '...f', '...g'),
        fc
          .tuple(
            fc.constantFrom(
              'a',
              'b',
              'd',
              'a(x: 1)',
              'a(x: 2)',
              'b: a(y: {p: 1, q: [2]})',
              'b: a(y: {q: [2], p: 1})',
              'a(x: 1, y: 1)',
              'a(y: 1, x: 1)',
              '... on Query',
              '...',
            ),
            tie('set'),
          )
          .map(([name, set]) => `${name} ${set}`),
      ),
      set: fc
        .array(tie('field'), { minLength: 1, maxLength: 3, depthIdentifier: 'field' })
        .map((all) => `{ ${all.join(' ')} }`),
    })).set;

  test('are refused exactly when graphql-js refuses them', () => {
    const verdicts = { refused: 0, passed: 0 };
    fc.assert(
      fc.property(selection(3), selection(2), selection(1), (root, f, g) => {
        const spread = g.replaceAll('...f', 'c').replaceAll('...g', 'c');
        const text = `query ${root} fragment f on Query ${f.replaceAll('...f', 'c')} fragment g on Query ${spread}`;
        const document = parse(text);
        const refused = validate(schema, document, [OverlappingFieldsCanBeMergedRule]).length > 0;
        const ours = validate(schema, document, [overlappingFields(schema)]).length > 0;
        verdicts[refused ? 'refused' : 'passed'] += reaches(root, f) ? 1 : 0;
        // A conflict inside a fragment that nothing spreads is another rule's to refuse.
        expect([text, reaches(root, f) && ours !== refused]).toEqual([text, false]);
      }),
      { numRuns: 3000 },
    );
    expect(Math.min(verdicts.refused, verdicts.passed)).toBeGreaterThan(50);
  });
  const reaches = (root: string, f: string) => root.includes('...f') && (root.includes('...g') || f.includes('...g'));

  test('a schema with interfaces is not judged by it', () => {
    const abstract = buildSchema('type Query { i: I } interface I { a: Int } type A implements I { a: Int }');
    expect(() => overlappingFields(abstract)).toThrow('I is one');
  });

  const unions = buildSchema(`
    type Query { u: [U!]! } union U = A | B
    type A { x: Int y: String a: A b: B! u: U } type B { x: String y: String a: A b: B u: U }
  `);
  /** Sets of selections of an A, a B and a U. `x: __typename` is left out: graphql-js does not know its type there. */
  const unionSets = (max: number) => {
    const options = { maxDepth: max, depthIdentifier: 'set' };
    const below = (names: readonly string[], set: fc.Arbitrary<string>) =>
      fc.tuple(fc.constantFrom(...names), set).map(([name, inner]) => `${name} ${inner}`);
    const braced = (item: fc.Arbitrary<string>) =>
      fc.array(item, { minLength: 1, maxLength: 3 }).map((all) => `{ ${all.join(' ')} }`);
    return fc.letrec<Record<'A' | 'B' | 'U' | 'object', string>>((tie) => ({
      object: fc.oneof(
        options,
        fc.constantFrom('x', 'y', 'x: y', 'y: x', '__typename'),
        below(['a', 'b: a'], tie('A')),
        below(['b', 'a: b'], tie('B')),
        below(['u', 'a: u'], tie('U')),
      ),
      A: braced(tie('object')),
      B: braced(tie('object')),
      U: braced(
        fc.oneof(options, fc.constant('__typename'), below(['... on A'], tie('A')), below(['... on B'], tie('B'))),
      ),
    }));
  };

  test('of a union are refused exactly when graphql-js refuses them', () => {
    const verdicts = { refused: 0, passed: 0 };
    const { U } = unionSets(4);
    const { A, B } = unionSets(2);
    fc.assert(
      fc.property(U, A, B, (u, f, g) => {
        const text = `{ u { ...f ...g ...${u} } } fragment f on A ${f} fragment g on B ${g}`;
        const document = parse(text);
        const refused = validate(unions, document, [OverlappingFieldsCanBeMergedRule]).length > 0;
        const ours = validate(unions, document, [overlappingFields(unions)]).length > 0;
        verdicts[refused ? 'refused' : 'passed'] += 1;
        expect([text, ours]).toEqual([text, refused]);
      }),
      { numRuns: 3000 },
    );
    expect(Math.min(verdicts.refused, verdicts.passed)).toBeGreaterThan(50);
  });
});

describe('what is kept of documents', () => {
  const { schema } = graphqlSample();
  const keep = () => {
    const documents = createDocuments(schema, DEFAULT_LIMITS, { introspection: false });
    return { documents, executor: createExecutor(schema, documents) };
  };

  test('documents that come once do not push out one that was compiled', async () => {
    const { documents, executor } = keep();
    const text = '{ thing { id leaf { name } } }';
    const known = documents.prepare(text) as ReadyDocument;
    for (let call = 0; call < 3; call += 1)
      await executor.runCompiled(known, known.choose(undefined), {}, sampleState());
    let most = 0;
    for (let i = 0; i < 3000; i += 1) {
      documents.prepare(`{ thing(text: "${i} ${'x'.repeat(20_000)}") { id } }`);
      most = Math.max(most, documents.bytes());
    }
    expect(documents.prepare(text)).toBe(known);
    expect(most).toBeLessThan(20 * 1024 * 1024);
  });
});
