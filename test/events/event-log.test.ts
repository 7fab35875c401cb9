import { ran } from '../support/operations';
import { v4, v5, v7 } from 'uuid';
import { eventUserId } from '../../domain/events/event-users';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { eventLog } from '../../projections/events/events';
import { ensureEventLogPartitions } from '../../projections/events/event-log-partitions';
import { applyRecords, loadEndings } from '../../projections/runtime/drive/apply';
import { cloneTables } from '../../projections/runtime/rebuild/shadow';
import { event } from '../../read-api/events/events';
import { testDatabase, type TestDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

const BIG = '{"user_id":820982911946154508, "b":1.10,"a":"\\u00e4 \\"x\\""}';
let offset = 0;

function record(given: Partial<LoggedRecord> = {}): LoggedRecord {
  const id = v7();
  return {
    id,
    account_id: v4(),
    type: 'kick:follower',
    platform: 'kick',
    external_id: `kick:${id}`,
    occurred_at: '2026-03-04T05:06:07.891Z',
    received_at: '2026-03-04T05:06:08Z',
    subject: null,
    raw: BIG,
    trace: null,
    topic: 'platform-events',
    partition: 0,
    offset: offset++,
    ...given,
  };
}

const live = (batch: LoggedRecord[]) =>
  t.db.transaction((tx) => applyRecords(eventLog, batch, tx, { rebuilding: false }));
const rebuilt = (batch: LoggedRecord[]) =>
  t.db.transaction((tx) => applyRecords(eventLog, batch, tx, { rebuilding: true }));
const rowsOf = (account_id: string) =>
  t.db.query('select * from platform_event_logs where account_id = $1 order by created_at, id', [account_id]);
const countersOf = (account_id: string) =>
  t.db.query('select type, platform, day::text, count from event_log_counters where account_id = $1 order by 1, 2, 3', [
    account_id,
  ]);

describe('the event log', () => {
  test('a record becomes a row, a count and a message that shows the record as a read does', async () => {
    const given = record();
    const messages = await live([given]);
    const [row] = await rowsOf(given.account_id);
    expect(row).toEqual({
      id: given.id,
      account_id: given.account_id,
      type: 'kick:follower',
      platform: 'kick',
      external_id: given.external_id,
      user_id: '820982911946154508',
      raw: BIG,
      created_at: '2026-03-04T05:06:07.891Z',
    });
    expect(await countersOf(given.account_id)).toEqual([
      { type: 'kick:follower', platform: 'kick', day: '2026-03-04', count: 1 },
    ]);
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatchObject({ channel: `events:${given.account_id}`, event_type: 'kick:follower' });
    // Digits and escapes of the payload stay as they came; blanks between its members may go.
    expect(messages[0]!.data).toContain(`"payload":${BIG.replace(', ', ',')},`);
    const asked = ran(event, { id: given.id }, { account_id: given.account_id }, { db: t.db });
    const shown = (await asked) as Record<string, unknown>;
    const { payload, ...data } = JSON.parse(messages[0]!.data) as Record<string, unknown>;
    expect(data).toEqual({ ...shown, raw: undefined });
    expect(payload).toEqual(JSON.parse(BIG));
    expect(data).not.toHaveProperty('raw');
  });

  test.each(['', '.5', '.590', '.123456', '.1234567', '.1234564'])(
    'a message shows the time as every later read does: seconds with %s',
    async (fraction) => {
      const account_id = v4();
      const given = record({ account_id, occurred_at: `2026-03-04T05:06:07${fraction}Z` });
      const [message] = await live([given]);
      const [row] = await rowsOf(account_id);
      expect(JSON.parse(message!.data)).toMatchObject({ id: given.id, created_at: row!.created_at });
    },
  );

  test('a redelivered page leaves the same rows and says nothing', async () => {
    const account_id = v4();
    const page = [record({ account_id }), record({ account_id, external_id: null }), record({ account_id })];
    expect(await live(page)).toHaveLength(3);
    const before = [await rowsOf(account_id), await countersOf(account_id)];
    expect(await live(page)).toEqual([]);
    expect([await rowsOf(account_id), await countersOf(account_id)]).toEqual(before);
  });

  test('of two deliveries of one external id the first counts, in one batch or days apart', async () => {
    const account_id = v4();
    const first = record({ account_id, external_id: 'kick:same' });
    const inBatch = record({ account_id, external_id: 'kick:same', raw: '{}' });
    const later = record({ account_id, external_id: 'kick:same', occurred_at: '2026-03-07T00:00:00Z', raw: '{}' });
    expect(await live([first, inBatch])).toHaveLength(1);
    expect(await live([later])).toEqual([]);
    expect((await rowsOf(account_id)).map((row) => row.id)).toEqual([first.id]);
    expect(await countersOf(account_id)).toMatchObject([{ count: 1 }]);
  });

  test.each([null, 'mine-1'])(
    'an emit whose answer was lost comes again under its derived id and another time (external id %s): the first counts, live and rebuilt',
    async (external_id) => {
      const account_id = v4();
      const id = v5(v4(), v4());
      const at = (second: number) =>
        record({ id, account_id, external_id, occurred_at: `2026-03-04T05:06:0${second}.5Z` });
      const [first, inBatch, later] = [at(1), at(2), at(3)];
      expect(await live([first, inBatch])).toHaveLength(1);
      expect(await live([later])).toEqual([]);
      const before = [await rowsOf(account_id), await countersOf(account_id)];
      expect(before[0]).toMatchObject([{ id, created_at: '2026-03-04T05:06:01.500Z' }]);
      await t.db.query('delete from platform_event_logs where account_id = $1', [account_id]);
      await t.db.query('delete from event_log_counters where account_id = $1', [account_id]);
      await rebuilt([first, inBatch]);
      await rebuilt([later]);
      expect([await rowsOf(account_id), await countersOf(account_id)]).toEqual(before);
    },
  );

  test('a record that lies in the log twice counts once, in one batch or in two', async () => {
    const account_id = v4();
    const [named, nameless] = [record({ account_id }), record({ account_id, external_id: null })];
    expect(await live([named, nameless, named, nameless])).toHaveLength(2);
    expect(await live([nameless, named])).toEqual([]);
    const before = [await rowsOf(account_id), await countersOf(account_id)];
    await t.db.query('delete from platform_event_logs where account_id = $1', [account_id]);
    await t.db.query('delete from event_log_counters where account_id = $1', [account_id]);
    await rebuilt([named, nameless, named, nameless]);
    await rebuilt([nameless, named]);
    expect([await rowsOf(account_id), await countersOf(account_id)]).toEqual(before);
  });

  test('external ids are an account’s own, and records without one always count', async () => {
    const [a, b] = [v4(), v4()];
    const page = [
      record({ account_id: a, external_id: 'x' }),
      record({ account_id: b, external_id: 'x' }),
      record({ account_id: a, external_id: null }),
      record({ account_id: a, external_id: null }),
    ];
    expect(await live(page)).toHaveLength(4);
    expect([(await rowsOf(a)).length, (await rowsOf(b)).length]).toEqual([3, 1]);
  });

  test('a rebuild over the same records gives the same rows and counts, without messages or ledger entries', async () => {
    const account_id = v4();
    const records = Array.from({ length: 60 }, (_, i) =>
      record({
        account_id,
        type: i % 2 ? 'kick:gift' : 'kick:follower',
        external_id: i % 5 === 0 ? null : `x${i % 40}`,
        occurred_at: new Date(Date.UTC(2026, 2, 1 + (i % 7), i % 24)).toISOString(),
      }),
    );
    await live(records.slice(0, 25));
    await live(records.slice(20));
    const before = [await rowsOf(account_id), await countersOf(account_id)];
    const ledger = await t.db.query('select * from ledger order by record_id');
    await t.db.query('delete from platform_event_logs where account_id = $1', [account_id]);
    await t.db.query('delete from event_log_counters where account_id = $1', [account_id]);
    // Another order of batches: what counts is the ledger's word, not who comes first.
    expect(await rebuilt(records.slice(30))).toEqual([]);
    expect(await rebuilt(records)).toEqual([]);
    expect([await rowsOf(account_id), await countersOf(account_id)]).toEqual(before);
    expect(await t.db.query('select * from ledger order by record_id')).toEqual(ledger);
  });

  test('loaded into empty tables, duplicates and all, the same rows and counts come out', async () => {
    const account_id = v4();
    const derived = v5('key', account_id);
    const at = (day: number) => new Date(Date.UTC(2026, 2, day)).toISOString();
    const pages = [
      [record({ account_id, external_id: 'a' }), record({ account_id, external_id: 'a', occurred_at: at(9) })],
      [record({ account_id, external_id: 'b' }), record({ account_id, external_id: null })],
      [record({ account_id, external_id: null, id: derived }), record({ account_id, external_id: null })],
      [record({ account_id, external_id: null, id: derived, occurred_at: at(8) }), record({ account_id })],
      [record({ account_id, external_id: 'b', occurred_at: at(7) }), record({ account_id, external_id: 'c' })],
    ];
    // What a producer stored twice, the second time in a page with something new.
    pages.push([...pages[1]!, record({ account_id })], [...pages[4]!]);
    for (const page of pages) await live(page);
    const rows = (schema: string) =>
      t.db.query(`select * from ${schema}.platform_event_logs where account_id = $1 order by id, created_at`, [
        account_id,
      ]);
    await t.db.query('create schema load_test');
    await t.db.transaction(async (tx) => {
      await cloneTables(tx, eventLog.tables, 'load_test', eventLog.late_indexes);
      await tx.query('set local search_path = load_test, public');
      let failed = 0;
      for (const page of pages) {
        await tx.query('savepoint page');
        // As a rebuild does: a page that fails comes again as one that is not loaded.
        const messages = await applyRecords(eventLog, page, tx, { rebuilding: true, loading: true }).catch(async () => {
          failed += 1;
          await tx.query('rollback to savepoint page');
          return applyRecords(eventLog, page, tx, { rebuilding: true });
        });
        expect(messages).toEqual([]);
      }
      expect(failed).toBe(2);
      const steps = await loadEndings(eventLog, tx);
      const [{ parts }] = (await tx.query(
        `select count(*) as parts from pg_partition_tree('load_test.platform_event_logs') where isleaf`,
      )) as [{ parts: number }];
      expect(steps).toHaveLength(parts + 1);
      for (const step of steps) await step(tx);
    });
    expect(await rows('load_test')).toEqual(await rows('public'));
    expect((await rows('load_test')).length).toBe(8);
    const counters = 'select type, platform, day::text, count from load_test.event_log_counters order by 1, 2, 3';
    expect(await t.db.query(counters)).toEqual(await countersOf(account_id));
  });

  test('two workers with the same page at once write it once', async () => {
    const account_id = v4();
    const page = Array.from({ length: 50 }, () => record({ account_id }));
    const said = await Promise.all([live(page), live(page), live(page)]);
    expect(said.flat()).toHaveLength(50);
    expect(await countersOf(account_id)).toMatchObject([{ count: 50 }]);
  });

  test('odd texts are stored as far as they can be, and their batch with them', async () => {
    const account_id = v4();
    const odd = record({
      account_id,
      type: `kick:${'ä'.repeat(150)}`,
      external_id: 'a\0b',
      raw: '{"user_id":"\\u0000x"}',
    });
    const long = record({ account_id, raw: JSON.stringify({ user_id: 'u'.repeat(5000) }) });
    expect(await live([odd, record({ account_id }), long])).toHaveLength(3);
    const rows = await rowsOf(account_id);
    expect(rows.map((row) => [row.type.length, row.external_id, row.user_id])).toEqual(
      expect.arrayContaining([
        [100, 'a\ufffdb', '\ufffdx'],
        [13, long.external_id, null],
      ]),
    );
  });

  test('rows that came before their month had a partition move into it', async () => {
    const account_id = v4();
    const now = new Date();
    const last = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15)).toISOString();
    const ancient = '1999-12-31T23:59:59.000Z';
    // One row makes no partition of a month that only an import reaches.
    const older = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 20, 15)).toISOString();
    await live([last, ancient, older].map((occurred_at) => record({ account_id, occurred_at })));
    const places = () =>
      t.db.query(
        'select tableoid::regclass::text as place from platform_event_logs where account_id = $1 order by created_at',
        [account_id],
      );
    expect(await places()).toEqual([
      { place: 'platform_event_logs_default' },
      { place: 'platform_event_logs_default' },
      { place: 'platform_event_logs_default' },
    ]);
    const partitions = async () =>
      (await t.db.query(`select from pg_inherits where inhparent = 'platform_event_logs'::regclass`)).length;
    const before = await partitions();
    const made = await Promise.all([1, 2, 3].map(() => ensureEventLogPartitions(t.db, 3)));
    // Each answers for those that it made itself.
    expect(made.reduce((sum, one) => sum + one)).toBe((await partitions()) - before);
    expect(await places()).toEqual([
      { place: 'platform_event_logs_default' },
      { place: 'platform_event_logs_default' },
      { place: `platform_event_logs_${last.slice(0, 7).replace('-', '_')}` },
    ]);
    expect((await rowsOf(account_id)).map((row) => row.created_at)).toEqual([ancient, older, last]);
  });

  test('rows of one month move in one transaction, so that the default partition is locked for no more', async () => {
    const now = new Date();
    const months = [7, 6, 5].map((ago) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago, 15)));
    const account_id = v4();
    await live(months.map((at) => record({ account_id, occurred_at: at.toISOString() })));
    const left = async () => {
      const rows = `select from platform_event_logs_default where account_id = $1`;
      return (await t.db.query(rows, [account_id])).length;
    };
    for (const expected of [2, 1, 0]) {
      await t.db.query('select ensure_event_log_partitions(0)');
      expect(await left()).toBe(expected);
    }
    expect(await rowsOf(account_id)).toHaveLength(3);
  });

  test('the same statements fill shadow tables when these stand in by the search path', async () => {
    const given = record();
    await live([given]);
    await t.db.query('create schema shadow_test');
    await t.db.query('create table shadow_test.platform_event_logs (like platform_event_logs including all)');
    await t.db.query('create table shadow_test.event_log_counters (like event_log_counters including all)');
    const count = (tx: Queryable, table: string) =>
      tx.query(`select count(*) from ${table} where account_id = $1`, [given.account_id]);
    await t.db.transaction(async (tx) => {
      await tx.query('set local search_path = shadow_test, public');
      await applyRecords(eventLog, [given], tx, { rebuilding: true });
      expect(await count(tx, 'shadow_test.platform_event_logs')).toEqual([{ count: 1 }]);
    });
    expect(await count(t.db, 'public.platform_event_logs')).toEqual([{ count: 1 }]);
    expect(await countersOf(given.account_id)).toMatchObject([{ count: 1 }]);
  });
});

describe('the person an event is about', () => {
  test.each([
    ['kick', '{"broadcaster":{"user_id":1},"follower":{"user_id":987654321}}', '987654321'],
    ['kick', '{"gifter":{"user_id":5},"giftees":[{"user_id":6}]}', '5'],
    ['kick', '{"gifter":{"is_anonymous":true,"user_id":null}}', null],
    ['twitch', '{"user_id":"1234","broadcaster_user_id":"9"}', '1234'],
    ['twitch', '{"event":{"user_id":"77"}}', '77'],
    ['twitch', '{"chatter_user_id":"4145994"}', '4145994'],
    ['trovo', '{"sender_id":107380000}', '107380000'],
    ['shopify', '{"id":1,"customer":{"id":820982911946154508}}', '820982911946154508'],
    ['streamelements', '{"channel":"5a","donation":{"user":{"username":"Ada","channel":"5a"}}}', 'Ada'],
    ['streamelements', '{"channel":"5a","donation":{"user":{"username":"Ada","channel":"6b"}}}', '6b'],
    ['streamelements', '{"channel":"5a","donation":{"user":{"channel":"5a"}}}', null],
    ['constructor', '{"other":1}', null],
    ['__proto__', '{"other":1}', null],
    ['anything', '{"user_id": 820982911946154508}', '820982911946154508'],
    ['anything', '{"a":{"user_id":1},"b":"\\"user_id\\":2","user_id":\n99999999999999999999}', '99999999999999999999'],
    ['anything', '{"user_id":99999999999999999991,"user_id":99999999999999999992}', '99999999999999999992'],
    ['anything', '{"other":1}', null],
    // Names may be written by their escapes.
    ['anything', '{"user\\u005fid":"7"}', '7'],
    ['kick', '{"\\u0066ollower":{"us\\u0065r_id":7}}', '7'],
    ['kick', '{"follower":{"id":7}}', null],
    ['anything', '{"user_id":{"a":1}}', null],
    ['anything', '"[erased]"', null],
    ['anything', 'not json', null],
    ['anything', '[1,2]', null],
  ])('%s %s', (platform, raw, expected) => {
    expect(eventUserId(platform, raw)).toBe(expected);
  });
});
