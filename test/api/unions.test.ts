import Ajv2020 from 'ajv/dist/2020';
import { z } from 'zod';
import { authenticated, command, get, post, query, whole } from '../../app/operation';
import { RawJson } from '../../lib/json/raw-json';
import { callerOf, serveDeclared, type DeclaredApi } from '../support/declared-api';
import { timeLimit } from '../support/patience';

/** Objects of several kinds in one place, out and in, on both protocols and in OpenAPI. */
const Text = z.object({ kind: z.literal('text_note'), body: z.string(), size: z.int() }).meta({ id: 'TextNote' });
const Owner = z.object({ user_name: z.string() }).meta({ id: 'NoteOwner' });
const Image = z
  .object({
    kind: z.literal('image'),
    image_url: z.string(),
    size: z.string().nullable(),
    owner: Owner,
    raw: z.unknown(),
  })
  .meta({ id: 'ImageNote' });
const AnyNote = z.discriminatedUnion('kind', [Text, Image]).meta({ id: 'AnyNote' });
const Board = z.object({ first: AnyNote, second: AnyNote.nullable(), all: z.array(AnyNote) }).meta({ id: 'Board' });

const text = { kind: 'text_note', body: 'Hi', size: 2, secret: 'unnamed' } as const;
const owner = { user_name: 'ada', secret: 'unnamed' };
const image = {
  kind: 'image',
  image_url: 'u',
  size: null,
  owner,
  raw: new RawJson('{"n": 1.0}'),
  secret: 'unnamed',
} as const;
const NewNote = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text_note'), body: z.string().min(1) }),
  z.object({ kind: z.literal('image'), image_url: z.string(), width: z.int().nullish() }),
]);
const operations = [
  query({
    name: 'board',
    summary: 'x',
    rest: get('/v1/board'),
    guard: [authenticated],
    input: z.object({}),
    output: Board,
    run: async () => ({ first: text, second: null, all: [image, text] }),
  }),
  query({
    name: 'anyNotes',
    summary: 'x',
    rest: get('/v1/any-notes'),
    pages: whole(),
    guard: [authenticated],
    input: z.object({}),
    output: AnyNote,
    run: async () => [text, image],
  }),
  command({
    name: 'addNote',
    summary: 'x',
    rest: post('/v1/any-notes', { envelope: 'bare' }),
    graphql: { argument: 'input' },
    guard: [authenticated],
    input: z.object({ note: NewNote, more: z.array(NewNote).nullish() }),
    output: z.object({ seen: z.string() }).meta({ id: 'Added' }),
    run: async ({ input }) => ({ seen: JSON.stringify(input) }),
  }),
];

let api: DeclaredApi;
beforeAll(async () => {
  api = await serveDeclared(operations, {}, { ada: callerOf({}) });
});
afterAll(() => api?.close());

const TEXT = { kind: 'text_note', body: 'Hi', size: 2 };
const IMAGE = { kind: 'image', image_url: 'u', size: null, owner: { user_name: 'ada' }, raw: { n: 1 } };

test('REST shows the members of each kind, and no other', async () => {
  const board = await api.rest('GET', '/v1/board');
  expect(board.json.data).toEqual({ first: TEXT, second: null, all: [IMAGE, TEXT] });
  expect(board.text).toContain('"raw":{"n": 1.0}');
  expect((await api.rest('GET', '/v1/any-notes')).json.data).toEqual([TEXT, IMAGE]);
});

test('GraphQL tells them apart, interpreted and compiled alike', async () => {
  const document = `{
    board { first { __typename ... on TextNote { body } ...image } second { __typename } all { kind: __typename ...image } }
    anyNotes { ... on TextNote { size } ... on ImageNote { length: size owner { userName } raw } }
  } fragment image on ImageNote { imageUrl owner { userName } }`;
  for (let n = 0; n < 6; n += 1) {
    const { json, text: sent } = await api.gql(document);
    expect(json).toEqual({
      data: {
        board: {
          first: { __typename: 'TextNote', body: 'Hi' },
          second: null,
          all: [{ kind: 'ImageNote', imageUrl: 'u', owner: { userName: 'ada' } }, { kind: 'TextNote' }],
        },
        anyNotes: [{ size: 2 }, { length: null, owner: { userName: 'ada' }, raw: { n: 1 } }],
      },
    });
    expect(sent).toContain('"raw":{"n": 1.0}');
  }
});

test.each([
  ['one name, two types', '{ anyNotes { ... on TextNote { size } ... on ImageNote { size } } }'],
  ['one name for the type and a field', '{ anyNotes { a: __typename ... on TextNote { a: body } } }'],
  [
    'one name for an object and a text',
    '{ anyNotes { ... on TextNote { a: body } ... on ImageNote { a: owner { userName } } } }',
  ],
  [
    'one name, two fields of one object',
    '{ anyNotes { ... on ImageNote { a: imageUrl } ...f } } fragment f on ImageNote { a: size }',
  ],
  [
    'one name below another',
    '{ board { first { ... on TextNote { a: size } } first { ... on ImageNote { a: imageUrl } } } }',
  ],
])('GraphQL refuses %s', async (_what, document) => {
  const { json } = await api.gql(document);
  expect([json.errors[0].extensions.code, json.errors[0].message]).toEqual([
    'VALIDATION_ERROR',
    expect.stringMatching(/conflict because/),
  ]);
});

test('GraphQL lets one name be of one shape in different objects', async () => {
  const { json } = await api.gql('{ anyNotes { ... on TextNote { a: body } ... on ImageNote { a: imageUrl } } }');
  expect(json.data.anyNotes).toEqual([{ a: 'Hi' }, { a: 'u' }]);
});

test('many fields of a union are judged in no time', async () => {
  const document = `{ anyNotes { ... on TextNote { ${'body '.repeat(400)} } ... on ImageNote { ${'imageUrl '.repeat(400)} } } }`;
  const began = performance.now();
  const { json } = await api.gql(document);
  expect(performance.now() - began).toBeLessThan(timeLimit(2000));
  expect(json.data.anyNotes).toEqual([{ body: 'Hi' }, { imageUrl: 'u' }]);
});

describe('as input', () => {
  const add = (note: unknown) => api.rest('POST', '/v1/any-notes', { body: { note } });
  const gql = (input: string) => api.gql(`mutation { addNote(input: ${input}) { seen } }`);

  test('REST takes it as it is, GraphQL one member of several', async () => {
    const rest = await add({ kind: 'image', image_url: 'u', width: 3 });
    expect(JSON.parse(rest.json.seen)).toEqual({ note: { kind: 'image', image_url: 'u', width: 3 } });
    const { json } = await gql('{note: {image: {imageUrl: "u", width: 3}}, more: [{textNote: {body: "b"}}]}');
    expect(JSON.parse(json.data.addNote.seen)).toEqual({
      note: { kind: 'image', image_url: 'u', width: 3 },
      more: [{ kind: 'text_note', body: 'b' }],
    });
  });

  test.each([{ kind: 'video' }, {}, { kind: 'text_note' }, 'text', { kind: 'text_note', body: '' }])(
    'REST refuses %j',
    async (note) => {
      const { status, json } = await add(note);
      expect([status, json.error]).toEqual([400, 'VALIDATION_ERROR']);
    },
  );

  test.each([
    '{note: {}}',
    '{note: {image: {imageUrl: "u"}, textNote: {body: "b"}}}',
    '{note: {textNote: null}}',
    '{note: {textNote: {}}}',
    '{note: {textNote: {body: ""}}}',
  ])('GraphQL refuses %s', async (input) => {
    expect((await gql(input)).json.errors[0].extensions.code).toBe('VALIDATION_ERROR');
  });
});

test('OpenAPI says which member tells them apart, and what is answered fits', async () => {
  const { json: document } = await api.rest('GET', '/v1/openapi.json');
  expect(document.components.schemas.AnyNote).toMatchObject({
    oneOf: [{ $ref: '#/components/schemas/TextNote' }, { $ref: '#/components/schemas/ImageNote' }],
    discriminator: {
      propertyName: 'kind',
      mapping: { text_note: '#/components/schemas/TextNote', image: '#/components/schemas/ImageNote' },
    },
  });
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'document');
  const { schema } = document.paths['/v1/board'].get.responses['200'].content['application/json'];
  const check = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')));
  expect([check((await api.rest('GET', '/v1/board')).json), check.errors]).toEqual([true, null]);
  const body = document.paths['/v1/any-notes'].post.requestBody.content['application/json'].schema;
  expect(body.properties.note).toMatchObject({ discriminator: { propertyName: 'kind' }, oneOf: [{}, {}] });
});
