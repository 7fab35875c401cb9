import type { Operation } from '../../app/operation';
import { ran } from '../support/operations';
import fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { v4, v7 } from 'uuid';
import { emitEvent } from '../../commands/events/events';
import { parseInstant } from '../../lib/time/instants';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { MAX_PAGE_BYTES } from '../../kernel/operations/pages';
import { eventLog } from '../../projections/events/events';
import { ensureEventLogPartitions } from '../../projections/events/event-log-partitions';
import { applyRecords } from '../../projections/runtime/drive/apply';
import { event, events } from '../../read-api/events/events';
import { type EventQuery, eventsPage } from '../../read-api/events/events-pages';
import { searchEvents } from '../../read-api/events/events-search';
import { testDatabase, type TestDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

const TYPES = ['kick:follower', 'kick:gift', 'twitch:cheer', 'shopify:order'] as const;
const HOUR = 3_600_000;
const START = Date.UTC(2026, 1, 26);

function record(account_id: string, given: Partial<LoggedRecord>): LoggedRecord {
  const type = given.type ?? 'kick:follower';
  return {
    id: v7(),
    account_id,
    type,
    platform: type.slice(0, type.indexOf(':')),
    external_id: null,
    occurred_at: '2026-03-01T12:00:00Z',
    received_at: '2026-03-01T12:00:00Z',
    subject: null,
    raw: '{}',
    trace: null,
    topic: 'platform-events',
    partition: 0,
    offset: 0,
    ...given,
  };
}

const store = (records: LoggedRecord[]) =>
  t.db.transaction((tx) => applyRecords(eventLog, records, tx, { rebuilding: false }));
type Asked = Partial<EventQuery> & { page?: number };
const all = (account_id: string, { page = 1, ...given }: Asked = {}): EventQuery => ({
  account_id,
  types: null,
  platforms: null,
  user_id: null,
  from: null,
  to: null,
  limit: 25,
  offset: (page - 1) * (given.limit ?? 25),
  max_bytes: MAX_PAGE_BYTES,
  ...given,
});

/** What a page must be, told from the list of all records. */
function expectedPage(records: readonly LoggedRecord[], filter: EventQuery): { ids: string[]; total: number } {
  const at = (text: string) => Date.parse(text);
  const found = records
    .filter((r) => !filter.types || filter.types.includes(r.type))
    .filter((r) => !filter.platforms || filter.platforms.includes(r.platform))
    .filter((r) => !filter.user_id || (JSON.parse(r.raw) as { user_id: string }).user_id === filter.user_id)
    .filter((r) => !filter.from || at(r.occurred_at) >= at(filter.from))
    .filter((r) => !filter.to || at(r.occurred_at) < at(filter.to))
    .sort((a, b) => at(b.occurred_at) - at(a.occurred_at) || (a.id < b.id ? 1 : -1));
  const first = filter.offset;
  return { ids: found.slice(first, first + filter.limit).map((r) => r.id), total: found.length };
}

test('bytes of an event that could not be stored do not count against the day of its account', async () => {
  const account_id = v4();
  const failed = new Error('the broker is unavailable');
  let append = (): Promise<Map<number, number>> => Promise.reject(failed);
  const services = { db: t.db, records: { append: () => append() }, awaitShown: async () => undefined };
  const emit = () => {
    const call = { input: { event_type: 'custom:one', raw: { n: 1 } }, caller: { account_id } };
    const context = { now: START, idempotency_seed: null };
    return emitEvent.run({ ...call, context, refuse: (code: string) => new Error(code) } as never, services as never);
  };
  const counted = () => t.db.query('select bytes from emitted_bytes where account_id = $1', [account_id]);
  for (let call = 1; call <= 2; call += 1) await expect(emit()).rejects.toBe(failed);
  expect(await counted()).toEqual([{ bytes: 0 }]);
  append = async () => new Map();
  await emit();
  expect(await counted()).toEqual([{ bytes: JSON.stringify({ n: 1 }).length }]);
});

describe('pages of the event log', () => {
  test('every filter, range and page shows what the list of all records says, and the exact total', async () => {
    const account_id = v4();
    // Hours on the clock, midnights among them, over six days with a gap, so that ranges cut days, fit them and miss
    // them.
    const records = Array.from({ length: 400 }, (_, i) =>
      record(account_id, {
        type: TYPES[i % 11 === 0 ? 3 : i % 3],
        occurred_at: new Date(START + ((i * 7919) % 100) * HOUR + (i % 4 === 0 ? 72 * HOUR : 0)).toISOString(),
        raw: JSON.stringify({ user_id: `u${i % 9}` }),
      }),
    );
    await store([...records, ...Array.from({ length: 20 }, () => record(v4(), {}))]);
    const instant = fc
      .integer({ min: -5, max: 200 })
      .chain((hours) =>
        fc
          .constantFrom(0, 1, -1, 1_800_000)
          .map((ms) => parseInstant(new Date(START + hours * HOUR + ms).toISOString())!),
      );
    const filter = fc
      .record({
        types: fc.option(fc.subarray([...TYPES, 'no:such'], { minLength: 1 })),
        platforms: fc.option(fc.subarray(['kick', 'twitch', 'shopify'], { minLength: 1 })),
        user_id: fc.option(fc.constantFrom('u1', 'u5', 'nobody'), { freq: 2 }),
        range: fc.tuple(fc.option(instant), fc.option(instant)),
        page: fc.integer({ min: 1, max: 8 }),
        limit: fc.constantFrom(1, 3, 25, 100),
      })
      .map(({ range: [a, b], ...rest }) => {
        const [from, to] = a !== null && b !== null && a > b ? [b, a] : [a, b];
        return all(account_id, { ...rest, from, to });
      });
    await fc.assert(
      fc.asyncProperty(filter, async (query) => {
        const found = await eventsPage(t.db, query);
        expect({ ids: found.rows.map((row) => row.id), total: found.total }).toEqual(expectedPage(records, query));
      }),
      { numRuns: 400 },
    );
  });

  test('a page ends behind the event that reaches its bytes, whatever finds it, and says so', async () => {
    const account_id = v4();
    const texts = (index: number) => [randomBytes(1 + index * 400).toString('base64'), 'ä'.repeat(1 + index * 2_000)];
    const records = Array.from({ length: 24 }, (_, index) =>
      record(account_id, {
        occurred_at: new Date(START + index * HOUR).toISOString(),
        raw: JSON.stringify({ user_id: 'p', text: texts(index)[index % 2] }),
      }),
    );
    await store(records);
    const bytes = new Map(records.map(({ id, raw }) => [id, Buffer.byteLength(raw)]));
    /** PostgreSQL counts a header with each value that is not compressed. */
    const HEADER = 8;
    for (const given of [{}, { types: [...TYPES] }, { user_id: 'p' }, { page: 2, limit: 10 }]) {
      for (const max_bytes of [1, 2_000, 60_000, 10_000_000]) {
        const filter = all(account_id, { ...given, max_bytes });
        const { ids, total } = expectedPage(records, filter);
        for (const found of [await eventsPage(t.db, filter), await searchEvents(t.db, filter, 'user')]) {
          const shown = found.rows.map(({ id }) => id);
          const sum = (some: string[]) => some.reduce((all_bytes, id) => all_bytes + bytes.get(id)! + HEADER, 0);
          expect(found).toMatchObject({ total, cut: shown.length < ids.length });
          expect(shown).toEqual(ids.slice(0, Math.max(1, shown.length)));
          expect(sum(shown.slice(0, -1)) - HEADER * shown.length).toBeLessThan(max_bytes);
          expect(found.cut ? sum(shown) : max_bytes).toBeGreaterThanOrEqual(max_bytes);
        }
      }
    }
  });

  test('an account without events has an empty page', async () => {
    expect(await eventsPage(t.db, all(v4()))).toEqual({ rows: [], total: 0, cut: false });
  });

  test('a page reads about as many rows as it shows, however many the account has', async () => {
    const account_id = v4();
    await t.db.query(
      `insert into platform_event_logs (id, account_id, type, platform, external_id, user_id, raw, created_at)
       select gen_random_uuid(), $1, p || ':' || a, p, null, 'u' || i % 2000, '{"a":1}',
              date_trunc('month', now()) - i * interval '2 minutes'
       from (select i, (array['kick','twitch','trovo'])[1 + i % 3] p, (array['follower','gift','raid','cheer'])[1 + i % 4] a
             from generate_series(1, 50000) i) made`,
      [account_id],
    );
    await t.db.query(
      `insert into event_log_counters (account_id, type, platform, day, count)
       select account_id, type, platform, (created_at at time zone 'UTC')::date, count(*) from platform_event_logs
       where account_id = $1 group by 1, 2, 3, 4`,
      [account_id],
    );
    await ensureEventLogPartitions(t.db, 0);
    await t.db.query('analyze platform_event_logs');
    await t.db.query('analyze event_log_counters');
    const range = {
      from: parseInstant(new Date(Date.now() - 60 * 24 * HOUR).toISOString())!,
      to: parseInstant(new Date(Date.now() - 35.3 * 24 * HOUR).toISOString())!,
    };
    const filters: [string, Asked, number][] = [
      ['all', {}, 25],
      ['a deep page', { page: 1500 }, 25 + 720],
      ['a type', { types: ['kick:gift'] }, 25],
      ['types', { types: ['kick:gift', 'trovo:raid', 'twitch:cheer'] }, 75],
      ['platforms', { platforms: ['kick', 'trovo'] }, 25 * 8],
      ['a person', { user_id: 'u7' }, 75],
      ['a person and a type', { user_id: 'u7', types: ['kick:gift'] }, 75],
      // The days that the range cuts are counted row by row.
      ['a range', range, 25 + 2 * 720],
    ];
    for (const [name, filter, most] of filters) {
      const read = await rowsRead((db) => eventsPage(db, all(account_id, filter)));
      // Partitions of a few hundred rows (other tests') are cheaper to read whole than through an index.
      expect({ name, read: read <= most + 500 ? 'few' : read }).toEqual({ name, read: 'few' });
    }
  });

  test('behind the last page nothing is shown, whatever the range', async () => {
    const account_id = v4();
    const hours = (n: number) => new Date(START + n * HOUR).toISOString();
    await store(Array.from({ length: 28 }, (_, n) => record(account_id, { occurred_at: hours(n) })));
    const to = parseInstant(hours(28))!;
    for (const range of [{ to }, { from: parseInstant(hours(0))!, to }, {}]) {
      const page = await eventsPage(t.db, all(account_id, { page: 3, limit: 25, ...range }));
      expect({ rows: page.rows, total: page.total }).toEqual({ rows: [], total: 28 });
    }
  });

  test('a tenant sees its own events only, by list and by id', async () => {
    const [mine, other] = [v4(), v4()];
    const given = record(mine, { raw: '{"user_id":"p"}' });
    await store([given]);
    const as = (account_id: string, operation: Operation, input: object) =>
      ran(operation, input, { account_id }, { db: t.db });
    for (const input of [{}, { types: [given.type] }, { user_id: 'p' }, { search: 'user' }, { platform: 'kick' }]) {
      expect(await as(mine, events, input)).toMatchObject({ total: 1, items: [{ id: given.id }] });
      expect(await as(other, events, input)).toMatchObject({ total: 0, items: [] });
    }
    await expect(as(other, event, { id: given.id })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});

/** A character in a JSON text, in one of the spellings that senders choose. */
function spelled(c: string, spelling: number): string {
  const units = [...Array(c.length).keys()].map((n) => c.charCodeAt(n).toString(16).padStart(4, '0'));
  const escaped = units.map((hex) => `\\u${spelling === 1 ? hex : hex.toUpperCase()}`).join('');
  if (spelling === 1 || spelling === 2) return escaped;
  return c === '/' ? '\\/' : JSON.stringify(c).slice(1, -1);
}

describe('search', () => {
  const find = async (account_id: string, search: string, given: Asked = {}) =>
    (await searchEvents(t.db, all(account_id, given), search)).total;

  test('ignores case, and takes %, _ and backslash as they are', async () => {
    const account_id = v4();
    const raws = [
      '{"a":"100% Fun"}',
      '{"a":"under_score"}',
      '{"a":"back\\\\slash"}',
      '{"a":"GRÜSSE"}',
      '{"a":"gr\\u00fcsse \\"x\\""}',
    ];
    await store(raws.map((raw) => record(account_id, { raw })));
    expect(await find(account_id, '0% fUN')).toBe(1);
    expect(await find(account_id, '%')).toBe(1);
    expect(await find(account_id, '_')).toBe(1);
    expect(await find(account_id, 'r_s')).toBe(1);
    expect(await find(account_id, 'e_s')).toBe(0);
    expect(await find(account_id, 'back\\slash')).toBe(1);
    expect(await find(account_id, 'Grüsse')).toBe(2);
    expect(await find(account_id, 'e "x"')).toBe(1);
    expect(await find(account_id, 'absent')).toBe(0);
    expect(await find(v4(), 'a')).toBe(0);
  });

  test.each([
    // Encoders of Go and Rails escape &, < and >, PHP /, others every letter outside ASCII.
    ['D\\u0026D Dice \\u003c2', ['D&D', 'd&d dice <2', '<2']],
    ['\\u00c4rger\\u00fcber', ['Ärgerüber', 'äRGERÜBER', 'rü']],
    ['\\u041f\\u0440\\u0418\\u0432\\u0435\\u0442', ['Привет', 'ПРИВЕТ']],
    ['ΟΔΟΣ', ['οδος', 'οδοσ']],
    ['οδος', ['ΟΔΟΣ']],
    ['İzmir', ['izmir']],
    ['<\\/p> gid:\\/\\/shop', ['</p>', 'gid://shop', '<\\/p>']],
    ['\\u0061\\u0062c', ['abc', 'ABC']],
    ['a\\nb\\u000ac\\td', ['a\nb', 'b\nc', 'c\td']],
    ['\\uD83D\\uDE00 \\ud83d\\ude01 😂', ['😀', '😁 😂']],
    ['C:\\\\u0026 \\u005c \\"q\\u0022', ['C:\\u0026', ' \\ ', '"q"']],
  ])('of text that the sender wrote as %s finds %j', async (written, searches) => {
    const account_id = v4();
    await store([record(account_id, { raw: `{"title":"${written}"}` }), record(account_id, { raw: '{"title":"-"}' })]);
    for (const search of searches) expect([search, await find(account_id, search)]).toEqual([search, 1]);
  });

  test('does not take an escaped backslash for the begin of an escape', async () => {
    const account_id = v4();
    await store([record(account_id, { raw: '{"title":"C:\\\\u0026 \\\\/ \\\\n"}' })]);
    for (const search of ['C:&', '\n', '\u0001']) expect([search, await find(account_id, search)]).toEqual([search, 0]);
  });

  test('finds each part of a text, in whatever case it is asked for and however it was escaped', async () => {
    const unit = fc.constantFrom(...'aZkſKßẞéÉжЖσςΣ&</\\"n0%_.*[(?+^$|{ \n\t\u0001\u2028😀𐐨𐐀');
    const text = fc.string({ unit, minLength: 1, maxLength: 60 });
    const bits = fc.array(fc.nat({ max: 3 }), { minLength: 61, maxLength: 61 });
    await fc.assert(
      fc.asyncProperty(text, bits, bits, fc.nat(), fc.nat(), async (whole, spelling, letters, from, length) => {
        const chars = [...whole];
        const at = from % chars.length;
        const search = chars
          .slice(at, at + 1 + (length % chars.length))
          .map((c, n) => [c, c.toLowerCase(), c.toUpperCase(), c][letters[n]!]!)
          .map((c, n) => ([...c].length === 1 ? c : chars[at + n]!))
          .join('');
        const account_id = v4();
        await store([record(account_id, { raw: `{"a":"${chars.map((c, n) => spelled(c, spelling[n]!)).join('')}"}` })]);
        expect(await find(account_id, search)).toBe(1);
      }),
      { numRuns: 60 },
    );
  });

  test('obeys the other filters and pages newest first', async () => {
    const account_id = v4();
    const records = Array.from({ length: 90 }, (_, i) =>
      record(account_id, {
        type: TYPES[i % 3],
        occurred_at: new Date(START + i * HOUR).toISOString(),
        raw: `{"user_id":"u${i % 5}","n":"${i % 2 ? 'odd' : 'even'}"}`,
      }),
    );
    await store(records);
    const odd = records.filter((r) => r.raw.includes('odd'));
    const filters: Asked[] = [
      {},
      { page: 2, limit: 7 },
      { types: ['kick:gift'] },
      { platforms: ['twitch'] },
      { user_id: 'u3' },
      { from: parseInstant('2026-02-27T03:00:00Z'), to: parseInstant('2026-02-28T13:30:00Z') },
      { page: 90 },
    ];
    for (const given of filters) {
      const filter = all(account_id, given);
      const found = await searchEvents(t.db, filter, 'ODD');
      expect({ ids: found.rows.map((row) => row.id), total: found.total }).toEqual(expectedPage(odd, filter));
      expect(found.partial).toBe(false);
    }
  });

  test('answers what it found when its budget ends, and says so', async () => {
    const account_id = v4();
    await store([record(account_id, { raw: '{"a":"needle"}' })]);
    expect(await searchEvents(t.db, all(account_id), 'needle', 0)).toMatchObject({ partial: true, total: 0, rows: [] });
    expect(await searchEvents(t.db, all(account_id), 'needle')).toMatchObject({ partial: false, total: 1 });
  });

  test('more searches than may run at once wait for their turn', async () => {
    const account_id = v4();
    await store([record(account_id, { raw: '{"a":"needle"}' })]);
    const found = await Promise.all(Array.from({ length: 12 }, () => find(account_id, 'needle')));
    expect(found).toEqual(Array.from({ length: 12 }, () => 1));
  });
});

describe('input of the list', () => {
  test.each([
    { from: '2026-02-30' },
    { to: 'yesterday' },
    { from: '2026-01-01T25:00:00Z' },
    { page: 0 },
    { page: 1.5 },
    { limit: 0 },
    { limit: 101 },
  ])('%j is refused', (input) => {
    expect(events.input.safeParse(input).success).toBe(false);
  });

  test('a range that ends before it begins is refused', async () => {
    const input = { from: '2026-03-02', to: '2026-03-01' };
    const asked = ran(events, input, { account_id: v4() }, { db: t.db });
    await expect(asked).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  });

  test.each([
    ['2026-02-28', '2026-02-28T00:00:00.000000Z'],
    ['2024-02-29T12:30Z', '2024-02-29T12:30:00.000000Z'],
    ['2026-02-28T23:59:59.1234567+02:00', '2026-02-28T21:59:59.123456Z'],
    ['2026-02-28T23:59:59 02:00', '2026-02-28T21:59:59.000000Z'],
    ['2026-02-28T23:59:59-0330', '2026-03-01T03:29:59.000000Z'],
    ['2026-13-01', null],
    ['2025-02-29', null],
    ['2026-01-01T24:00:00Z', null],
    ['2026-01-01T00:00:60Z', null],
    ['2026-01-01T00:00:00+25:00', null],
    ['0001-01-01', null],
    ['12026-01-01', null],
    ['2026', null],
    ['', null],
  ])('instant %s reads as %s', (text, expected) => {
    expect(parseInstant(text)).toBe(expected);
  });
});

interface Plan {
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}

/** Rows of the log that the statements of `work` really read. */
async function rowsRead(work: (db: Queryable) => Promise<unknown>): Promise<number> {
  let read = 0;
  const count = (plan: Plan) => {
    if (plan['Relation Name']?.startsWith('platform_event_logs')) {
      read += (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'];
    }
    plan.Plans?.forEach(count);
  };
  await work({
    async query(text, values) {
      const [row] = await t.db.query(`explain (analyze, format json) ${text}`, values);
      const plan: unknown = row!['QUERY PLAN'];
      count(((typeof plan === 'string' ? JSON.parse(plan) : plan) as [{ Plan: Plan }])[0].Plan);
      return [];
    },
  });
  return read;
}
