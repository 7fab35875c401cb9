import { intArray, jsonArray, textArray } from '../../engines/postgres/port';
import { testDatabase, type TestDatabase } from '../support/database';

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

test('arrays in binary form arrive as they are', async () => {
  for (const list of [[], [0], [1, -1, 2 ** 31 - 1, -(2 ** 31)]]) {
    const [row] = await t.db.query('select $1::integer[] as list', [intArray(list)]);
    expect(row!.list).toEqual(list);
  }
  for (const list of [[], [''], ['a"b\\', null, '🎉']]) {
    const [row] = await t.db.query('select $1::text[] as list', [textArray(list)]);
    expect(row!.list).toEqual(list);
  }
  const [row] = await t.db.query('select ($1::json[])[2]::text as second', [jsonArray([null, '{"a": "\\u00e9"}'])]);
  expect(row!.second).toBe('{"a": "\\u00e9"}');
  expect(() => intArray([2 ** 31])).toThrow('out of range');
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

test.each([
  ['2026-01-02 03:04:05.123456+00', '2026-01-02T03:04:05.123456Z'],
  ['2026-01-02 03:04:05.1234+00', '2026-01-02T03:04:05.123400Z'],
  ['2026-01-02 03:04:05.59+00', '2026-01-02T03:04:05.590Z'],
  ['2026-01-02 03:04:05+02', '2026-01-02T01:04:05.000Z'],
  ['infinity', 'infinity'],
  [null, null],
])('the instant %p is read as %p: RFC 3339 in UTC, as text in the order of time', async (stored, read) => {
  const [row] = await t.db.query('select $1::timestamptz as at', [stored]);
  expect(row).toEqual({ at: read });
});
