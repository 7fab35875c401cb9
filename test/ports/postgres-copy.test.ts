import fc from 'fast-check';
import { v4 } from 'uuid';
import { exactMicros } from '../../lib/time/instants';
import { BinaryRows } from '../../engines/postgres/binary-rows';
import { copyOut } from '../../engines/postgres/copy-out';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { testDatabase, type TestDatabase } from '../support/database';
import { until } from '../support/projections';

let t: TestDatabase;
/** As the projector's. */
let pipelined: PostgresDatabase;
beforeAll(async () => {
  t = await testDatabase();
  pipelined = new PostgresDatabase({ url: t.url, name: 'pipelined', size: 1, pipeline: true });
  await t.db.query('create table copied (id uuid primary key, said text, raw json, at timestamptz)');
});
afterAll(async () => {
  await pipelined?.close();
  await t?.drop();
});
beforeEach(() => t.db.query('truncate copied'));

const COPY = 'copy copied (id, said, raw, at) from stdin (format binary)';
type Row = { id: string; said: string | null; raw: string; at: number };

function bytesOf(rows: readonly Row[]): Buffer {
  const copied = new BinaryRows(4, 1);
  for (const { id, said, raw, at } of rows) {
    copied.row();
    copied.uuid(id);
    copied.text(said);
    copied.text(raw);
    copied.instant(at);
  }
  return copied.end();
}

const one = (given: Partial<Row> = {}): Row => ({ id: v4(), said: 'x', raw: '{}', at: 0, ...given });

test('rows come back as they went, whatever they hold', async () => {
  const text = fc.string({ unit: 'binary', maxLength: 300 }).map((any) => any.replaceAll('\0', '').toWellFormed());
  const row = fc.record({
    id: fc.uuid(),
    said: fc.option(text),
    raw: fc.json().filter((json) => json.isWellFormed()),
    at: fc.integer({ min: Date.UTC(1800) * 1000, max: Date.UTC(2200) * 1000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(row, { selector: ({ id }) => id, maxLength: 60 }), async (rows) => {
      await t.db.query('truncate copied');
      await pipelined.transaction((tx) => tx.query(COPY, [bytesOf(rows)]));
      const stored = await t.db.query(
        `select id, said, raw, (extract(epoch from at) * 1000000)::bigint as at from copied order by id`,
      );
      expect(stored).toEqual([...rows].sort((a, b) => (a.id < b.id ? -1 : 1)));
    }),
    { numRuns: 30 },
  );
});

test('what the server refuses fails alone: before the data, in the midst of it, and what was sent behind it', async () => {
  const ids = () => t.db.query('select id from copied');
  const refused = pipelined.transaction((tx) => tx.query(COPY.replace('said', 'no_such_column'), [bytesOf([one()])]));
  await expect(refused).rejects.toMatchObject({ code: '42703' });
  const broken = pipelined.transaction((tx) =>
    Promise.all([tx.query(COPY, [bytesOf([one(), one({ raw: '{' }), one()])]), tx.query('select 1 as one')]),
  );
  await expect(broken).rejects.toMatchObject({ code: '22P02' });
  expect(await ids()).toEqual([]);
  const [row, twice] = [one(), one()];
  await pipelined.transaction(async (tx) => {
    await tx.query('savepoint part');
    await expect(tx.query(COPY, [bytesOf([twice, twice])])).rejects.toMatchObject({ code: '23505' });
    await tx.query('rollback to savepoint part');
    const [, seen] = await Promise.all([tx.query(COPY, [bytesOf([row])]), tx.query('select id from copied')]);
    expect(seen).toEqual([{ id: row.id }]);
  });
  expect(await ids()).toEqual([{ id: row.id }]);
});

test('bytes are read as they lie, null as null, and a failure leaves the pool whole', async () => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, n) => n % 251));
  const query = `select n, case n when 2 then null else decode('${bytes.toString('hex')}', 'hex') end from generate_series(1, 3) n`;
  const rows = await copyOut(t.db.pool, query, 10_000);
  expect(rows.map(([n, read]) => [n!.readInt32BE(), read?.equals(bytes) ?? null])).toEqual([
    [1, true],
    [2, null],
    [3, true],
  ]);
  expect(await copyOut(t.db.pool, 'select 1 where false', 10_000)).toEqual([]);
  const divided = copyOut(t.db.pool, 'select 1 / (2 - n) from generate_series(1, 3) n', 10_000);
  await expect(divided).rejects.toMatchObject({ code: '22012' });
  await expect(copyOut(t.db.pool, 'select pg_sleep(600)', 50)).rejects.toThrow('Query read timeout');
  expect(await copyOut(t.db.pool, 'select 1', 10_000)).toHaveLength(1);
  expect(await copyOut(pipelined.pool, 'select 1', 10_000)).toHaveLength(1);
});

describe.each([
  ['pg_cancel_backend', '57014', true],
  ['pg_cancel_backend', '57014', false],
  ['pg_terminate_backend', '57P01', true],
  ['pg_terminate_backend', '57P01', false],
])('a COPY that %s ends midway (%s, pipelined: %s)', (end, code, pipeline) => {
  let pool: PostgresDatabase;
  beforeEach(() => void (pool = new PostgresDatabase({ url: t.url, name: 'ended', size: 1, pipeline })));
  afterEach(() => pool.close());

  /** Ends what the pool's connection is at, once it waits there. */
  const ended = async (event: string) => {
    const waits = `select pid from pg_stat_activity where application_name = 'lumio ended' and $1 in (wait_event, wait_event_type)`;
    const pid = await until(async () => (await t.db.query(waits, [event]))[0]?.pid as number | undefined);
    await t.db.query(`select ${end}($1)`, [pid]);
  };

  test('writing leaves nothing of it to who comes next', async () => {
    const [first, held, last] = [one(), one(), one()];
    await t.db.transaction(async (tx) => {
      await tx.query('insert into copied (id) values ($1)', [held.id]);
      const copying = pool.transaction((copy) => copy.query(COPY, [bytesOf([first, held, last])]));
      await Promise.all([expect(copying).rejects.toMatchObject({ code }), ended('Lock')]);
    });
    expect(await pool.query('select id from copied')).toEqual([{ id: held.id }]);
    await pool.transaction((tx) => tx.query(COPY, [bytesOf([first, last])]));
    expect(await pool.query('select id from copied')).toHaveLength(3);
  });

  test('reading leaves nothing of it to who comes next', async () => {
    const rows = (sleeps: number) =>
      copyOut(
        pool.pool,
        `select n, repeat('x', 100000) from generate_series(1, 3) n, pg_sleep(${sleeps} * (n / 3))`,
        60_000,
      );
    await Promise.all([expect(rows(600)).rejects.toMatchObject({ code }), ended('PgSleep')]);
    expect((await rows(0)).map(([n]) => n!.readInt32BE())).toEqual([1, 2, 3]);
  });
});

test('an instant is the microsecond that PostgreSQL reads, or left to it', async () => {
  const exact = [
    '2026-03-04T05:06:07Z',
    '2026-03-04T05:06:07.8Z',
    '2026-03-04T23:59:59.000001Z',
    '2024-02-29T00:00:00.123Z',
    '1969-12-31T23:59:59.999999Z',
    '1800-01-01T00:00:00.000001Z',
    '2199-12-31T23:59:59.999999Z',
    '2026-03-05T00:00:00.1Z',
  ];
  const rows = await t.db.query(
    `select (extract(epoch from at::timestamptz) * 1000000)::bigint as micros from unnest($1::text[]) as at`,
    [exact],
  );
  expect(exact.map(exactMicros)).toEqual(rows.map(({ micros }) => micros as number));
  const others = [
    '2026-02-30T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '1799-12-31T23:59:59Z',
    '9999-12-31T23:59:59.999999Z',
    '2026-03-04T24:00:00Z',
    '2026-03-04T05:06:60Z',
    '2026-03-04T05:06:07.1234567Z',
    '2026-03-04T05:06:07+01:00',
    '2026-03-04',
    'infinity',
    '',
  ];
  expect(others.map(exactMicros)).toEqual(others.map(() => null));
});
