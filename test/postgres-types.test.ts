import { testDatabase, type TestDatabase } from './support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t.drop());

test.each([
  [[]],
  [['events:read']],
  [['events:read', 'chat:*', 'a b']],
  [['']],
  [[null, 'NULL', 'null']],
  [['a,b', 'c"d', 'e\\f', '{g}', 'h=i']],
])('text[] %j comes back as it went', async (list: (string | null)[]) => {
  const [row] = await t.db.query('select $1::text[] as list', [list]);
  expect(row!.list).toEqual(list);
});

test('nested arrays and arrays with bounds of their own are read too', async () => {
  const [row] = await t.db.query(`select '{{a,b},{c,d}}'::text[] as nested, '[0:1]={a,b}'::text[] as bounds`);
  expect(row).toEqual({
    nested: [
      ['a', 'b'],
      ['c', 'd'],
    ],
    bounds: ['a', 'b'],
  });
});

test('instants are RFC 3339 in UTC with the digits that were stored', async () => {
  const [row] = await t.db.query(
    `select '2026-01-02 03:04:05.123456+00'::timestamptz as at, null::timestamptz as never`,
  );
  expect(row).toEqual({ at: '2026-01-02T03:04:05.123456Z', never: null });
});
