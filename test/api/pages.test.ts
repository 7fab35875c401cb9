import { z } from 'zod';
import Ajv2020 from 'ajv/dist/2020';
import { authenticated } from '../../access/authorization/guards';
import { query } from '../../app/operation';
import { cursor, cut, numbered, offset, rowsOf, whole, type PageKind } from '../../kernel/operations/pages';
import { RawJson } from '../../lib/json/raw-json';
import { get } from '../../kernel/operations/routes';
import { testDatabase, type TestDatabase } from '../support/database';
import { callerOf, serveDeclared, type DeclaredApi } from '../support/declared-api';

/** Every kind of page, over the same rows, on both protocols and in OpenAPI. */
const Row = z.object({ id: z.int(), note_text: z.string() }).meta({ id: 'PagedRow' });
type Row = z.output<typeof Row>;
const ROWS = { from: 'paged where note_text like $1', order: 'note_text, id' };
const filter = z.object({ text: z.string().nullish() });
const like = ({ text }: z.output<typeof filter>) => `%${text ?? ''}%`;

const listed = (name: string, pages: PageKind) =>
  ({
    name,
    summary: name,
    rest: get(`/v1/${name}`),
    graphql: { argument: 'filter' },
    guard: [authenticated],
    pages,
    input: filter,
    output: Row,
  }) as const;
const byNumber = numbered('NumberedRows', { items: 2, most: 4, pages: 5 });
const perPage = numbered(undefined, { items: 2, most: 4, limit: 'per_page' });
const byOffset = offset('OffsetRows', { items: 2, most: 4, deepest: 6 });
const rowId = ({ id }: { id: number }) => id;
const dataOnly = offset(undefined, { rest: 'data' });
const byCursor = cursor(z.tuple([z.string(), z.int()]), 'CursorRows', { items: 2, most: 4 });
const operations = [
  query({
    ...listed('numbered', byNumber),
    pages: byNumber,
    run: ({ input, page }, { db }) => rowsOf(db, page, Row, { ...ROWS, values: [like(input)] }),
  }),
  query({
    ...listed('perPage', perPage),
    pages: perPage,
    run: ({ input, page }, { db }) => rowsOf(db, page, Row, { ...ROWS, values: [like(input)] }),
  }),
  query({
    ...listed('offset', byOffset),
    pages: byOffset,
    run: ({ input, page }, { db }) => rowsOf(db, page, Row, { ...ROWS, values: [like(input)] }),
  }),
  query({
    ...listed('data', dataOnly),
    pages: dataOnly,
    run: ({ input, page }, { db }) => rowsOf(db, page, Row, { ...ROWS, values: [like(input)] }),
  }),
  query({
    ...listed('cursor', byCursor),
    pages: byCursor,
    async run({ input, page: { after, limit } }, { db }) {
      const rows = await db.query<Row>(
        `select id, note_text from paged where note_text like $1
           and ($2::text is null or (note_text, id) > ($2, $3::int)) order by note_text, id limit $4`,
        [like(input), after?.[0] ?? null, after?.[1] ?? null, limit + 1],
      );
      return cut(rows, limit, (row): [string, number] => [row.note_text, row.id]);
    },
  }),
  query({
    ...listed('whole', whole()),
    pages: whole(),
    run: ({ input }, { db }) =>
      db.query<Row>('select id, note_text from paged where note_text like $1 order by id', [like(input)]),
  }),
];

/** Rows of a megabyte and more, and one that is beyond a page alone. */
const GREAT = [1, 3, 2, 5, 1, 1, 1].map((megabytes, index) => ({
  id: index + 1,
  raw: new RawJson(JSON.stringify('x'.repeat(megabytes * 1024 * 1024))),
}));
const Great = z.object({ id: z.int(), raw: z.unknown() }).meta({ id: 'GreatRow' });
const greatNumbered = numbered('GreatNumberedRows', { items: 5, limit: 'per_page' });
const greatOffset = offset('GreatOffsetRows');
const greatCursor = cursor(z.int(), 'GreatCursorRows');
const greatPlain = numbered(undefined);
operations.push(
  query({
    ...listed('greatNumbered', greatNumbered),
    pages: greatNumbered,
    output: Great,
    run: async ({ page: at }) => ({ items: GREAT.slice(at.offset, at.offset + at.limit), total: GREAT.length }),
  }),
  query({
    ...listed('greatOffset', greatOffset),
    pages: greatOffset,
    output: Great,
    run: async ({ page: at }) => ({ items: GREAT.slice(at.offset, at.offset + at.limit), total: GREAT.length }),
  }),
  query({
    ...listed('greatCursor', greatCursor),
    pages: greatCursor,
    output: Great,
    run: async ({ page: { after, limit } }) => cut(GREAT.slice(after ?? 0, (after ?? 0) + limit + 1), limit, rowId),
  }),
  query({
    ...listed('greatPlain', greatPlain),
    pages: greatPlain,
    output: Great,
    run: async () => ({ items: GREAT, total: GREAT.length }),
  }),
);

let t: TestDatabase;
let api: DeclaredApi;
beforeAll(async () => {
  t = await testDatabase();
  await t.db.query('create table paged (id int primary key, note_text text not null)');
  // Equal texts: the order needs the id, and a page must not lose or repeat one of them.
  await t.db.query("insert into paged select n, 'text ' || n / 4 from generate_series(1, 7) n");
  api = await serveDeclared(operations, { db: t.db }, { ada: callerOf({}) });
});
afterAll(async () => {
  await api?.close();
  await t?.drop();
});

const json = async (path: string) => (await api.rest('GET', path)).json;
const ids = (items: { id: number }[]) => items.map(({ id }) => id);
const gql = async (text: string) => {
  const { data, errors } = (await api.gql(text)).json;
  expect(errors).toBeUndefined();
  return data;
};
const relative = (text: unknown) => JSON.parse(JSON.stringify(text).replaceAll(api.url, ''));

describe('numbered', () => {
  test('on REST', async () => {
    expect(relative(await json('/v1/numbered?page=2&text=e'))).toEqual({
      data: [
        { id: 3, note_text: 'text 0' },
        { id: 4, note_text: 'text 1' },
      ],
      _links: {
        self: '/v1/numbered?page=2&text=e',
        first: '/v1/numbered?text=e&page=1',
        prev: '/v1/numbered?text=e&page=1',
        next: '/v1/numbered?text=e&page=3',
        last: '/v1/numbered?text=e&page=4',
      },
      _meta: { total: 7, page: 2, limit: 2, pages: 4 },
    });
    expect(await json('/v1/numbered?page=5')).toMatchObject({ data: [], _meta: { total: 7, page: 5 } });
    expect(await json('/v1/numbered?text=none')).toMatchObject({ data: [], _meta: { total: 0, page: 1, pages: 1 } });
    expect((await json('/v1/perPage?per_page=3&page=2'))._meta).toEqual({ total: 7, page: 2, limit: 3, pages: 3 });
  });

  test('in GraphQL', async () => {
    expect(
      await gql('{ numbered(filter: {page: 4}) { items { id noteText } total page limit pages partial } }'),
    ).toEqual({
      numbered: { items: [{ id: 7, noteText: 'text 1' }], total: 7, page: 4, limit: 2, pages: 4, partial: null },
    });
    expect(await gql('{ perPage(filter: {perPage: 4}) { id } }')).toEqual({
      perPage: [{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }],
    });
  });
});

test('by offset, on REST and in GraphQL', async () => {
  expect(await json('/v1/offset?offset=6&limit=4')).toEqual({ items: [{ id: 7, note_text: 'text 1' }], total: 7 });
  expect(await json('/v1/data?limit=1')).toEqual({ data: [{ id: 1, note_text: 'text 0' }] });
  expect(await gql('{ offset(filter: {offset: 5}) { items { id } total } data { id } }')).toEqual({
    offset: { items: [{ id: 6 }, { id: 7 }], total: 7 },
    data: [1, 2, 3, 4, 5, 6, 7].map((id) => ({ id })),
  });
});

test('the whole is its own first and last page', async () => {
  const { data, _links, _meta } = relative(await json('/v1/whole'));
  expect(ids(data)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(_links).toEqual({ self: '/v1/whole', first: '/v1/whole', last: '/v1/whole' });
  expect(_meta).toEqual({ total: 7, page: 1, limit: 7, pages: 1 });
  expect((await gql('{ whole(filter: {text: "0"}) { id } }')).whole).toHaveLength(3);
});

describe('by cursor', () => {
  test('REST shows every row once, also when rows come and go between the pages', async () => {
    const seen: number[] = [];
    let path: string | undefined = '/v1/cursor?limit=2&text=text';
    for (let pages = 0; path !== undefined; pages += 1) {
      const page: any = relative(await json(path));
      expect(page._links.first).toBe('/v1/cursor?limit=2&text=text');
      expect(page._meta.limit).toBe(2);
      expect(page._meta.next_cursor === null).toBe(page._links.next === undefined);
      seen.push(...ids(page.data));
      path = page._links.next;
      if (pages === 0) await t.db.query("insert into paged values (0, 'text 0'), (8, 'text 2')");
    }
    await t.db.query('delete from paged where id in (0, 8)');
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('GraphQL shows the same', async () => {
    const first = await gql('{ cursor { items { id } nextCursor } }');
    expect(ids(first.cursor.items)).toEqual([1, 2]);
    const rest = await gql(
      `{ cursor(filter: {limit: 4, cursor: "${first.cursor.nextCursor}"}) { items { id } nextCursor } }`,
    );
    expect(ids(rest.cursor.items)).toEqual([3, 4, 5, 6]);
    const last = await gql(`{ cursor(filter: {cursor: "${rest.cursor.nextCursor}"}) { items { id } nextCursor } }`);
    expect(last.cursor).toEqual({ items: [{ id: 7 }], nextCursor: null });
  });
});

describe('a page whose rows have more bytes than it may', () => {
  /** Ids by page, from link to link. */
  async function followed(path: string): Promise<number[][]> {
    const pages: number[][] = [];
    for (let next: string | undefined = path; next !== undefined;) {
      const page: any = relative(await json(next));
      pages.push(ids(page.data));
      next = page._links.next;
    }
    return pages;
  }

  test('ends early, and links lead through all rows', async () => {
    expect(await followed('/v1/greatNumbered')).toEqual([[1, 2], [3, 4], [5], [6, 7]]);
    expect(await followed('/v1/greatNumbered?per_page=3&page=1')).toEqual([[1, 2], [3], [4], [5, 6], [7]]);
    expect(await followed('/v1/greatCursor?limit=6')).toEqual([
      [1, 2],
      [3, 4],
      [5, 6, 7],
    ]);
    const rest = relative(await json('/v1/greatNumbered?text=e&per_page=3'))._links.next;
    const { _links, _meta, data } = relative(await json(rest));
    expect(ids(data)).toEqual([3]);
    expect(_meta).toEqual({ total: 7, page: 1, limit: 3, pages: 3 });
    expect(_links).toEqual({
      self: rest,
      first: '/v1/greatNumbered?text=e&per_page=3&page=1',
      next: '/v1/greatNumbered?text=e&per_page=3&page=2',
      last: '/v1/greatNumbered?text=e&per_page=3&page=3',
    });
    expect(await json('/v1/greatOffset?offset=2')).toMatchObject({ items: [{ id: 3 }, { id: 4 }], total: 7 });
  });

  test('ends early in GraphQL too, and goes on by its cursor', async () => {
    const pages: number[][] = [];
    for (let next: string | null = null; ;) {
      const rest: string = next === null ? '' : `, cursor: "${next}"`;
      const { greatNumbered: page } = await gql(
        `{ greatNumbered(filter: {perPage: 5, page: 1${rest}}) { items { id } page limit nextCursor } }`,
      );
      expect(page).toMatchObject({ page: 1, limit: 5 });
      pages.push(ids(page.items));
      next = page.nextCursor;
      if (next === null) break;
    }
    expect(pages).toEqual([[1, 2], [3, 4], [5]]);
  });

  test('is whole where its type has no place for a cursor', async () => {
    const rows = GREAT.map(({ id }) => ({ id }));
    expect((await gql('{ greatPlain { id } }')).greatPlain).toEqual(rows);
    expect((await json('/v1/greatPlain')).data).toMatchObject(rows);
  });
});

const of = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
test.each([
  'numbered?page=0',
  'numbered?page=6',
  'numbered?limit=5',
  'numbered?limit=0',
  `numbered?cursor=${of([0, 5])}`,
  `numbered?cursor=${of([21, 1])}`,
  `numbered?cursor=${of([-1, 1])}`,
  `perPage?cursor=${of([1, 2])}`,
  'perPage?limit=1',
  'perPage?page=1001',
  'offset?offset=7',
  'offset?offset=-1',
  'data?offset=10001',
  'whole?page=1',
  'whole?limit=1',
  'cursor?cursor=none',
  'cursor?cursor=',
  `cursor?cursor=${of(['text 0'])}`,
  `cursor?cursor=${of(['text 0', 'x'])}`,
  `cursor?cursor=${of(null)}`,
])('%s is refused, on both protocols', async (asked) => {
  const { status, json: body } = await api.rest('GET', `/v1/${asked}`);
  expect([status, body.error]).toEqual([400, 'VALIDATION_ERROR']);
});

test('a cursor has a longest length', async () => {
  expect((await api.rest('GET', `/v1/cursor?cursor=${of(['x'.repeat(1000), 1])}`)).status).toBe(400);
  expect((await api.rest('GET', `/v1/cursor?cursor=${of(['x'.repeat(700), 1])}`)).status).toBe(200);
});

test('OpenAPI says what each answers', async () => {
  const document = await json('/v1/openapi.json');
  for (const { name } of operations) {
    const { content } = document.paths[`/v1/${name}`].get.responses['200'];
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'document');
    const { schema } = content['application/json'];
    const resolved = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/'));
    expect([name, ajv.validate(resolved, await json(`/v1/${name}`)), ajv.errorsText()]).toEqual([
      name,
      true,
      'No errors',
    ]);
    expect(ajv.validate(resolved, { data: [{}] })).toBe(false);
  }
  const names = (path: string) => document.paths[path].get.parameters.map((one: { name: string }) => one.name);
  expect(names('/v1/cursor')).toEqual(['text', 'cursor', 'limit']);
  expect(names('/v1/perPage')).toEqual(['text', 'page', 'per_page']);
});
