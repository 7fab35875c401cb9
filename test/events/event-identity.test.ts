import { v4, v7 } from 'uuid';
import { ERASED_RAW, TOPICS } from '../../domain/common/records';
import { migrate } from '../../engines/postgres/migrate';
import type { LoggedRecord } from '../../engines/records/port';
import { MIGRATIONS } from '../../migrations';
import { eventLog } from '../../projections/events/events';
import { applyRecords } from '../../projections/runtime/drive/apply';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { replayTopic } from '../../maintenance/archive/replay';
import { trimBodies } from '../../projections/runtime/ledger/ledger';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database';
import { ACCOUNTS, engines, type Engines, record, runtimeOf, until } from '../support/projections';

const BODY = '{"gifter":{"user_id":5},"giftees":[1]}';

function unsigned(account_id: string, external_id: string, given: Partial<LoggedRecord> = {}): LoggedRecord {
  return {
    ...record(account_id, ''),
    external_id,
    raw: BODY,
    same_raw: 'once',
    topic: TOPICS.platform_events,
    partition: 0,
    offset: 0,
    ...given,
  };
}

describe('records whose id no signature covers', () => {
  let t: TestDatabase;
  beforeAll(async () => void (t = await testDatabase(20)));
  afterAll(() => t.drop());

  const live = (batch: LoggedRecord[]) =>
    t.db.transaction((tx) => applyRecords(eventLog, batch, tx, { rebuilding: false }));
  const kept = async (account_id: string) =>
    (
      await t.db.query('select external_id from platform_event_logs where account_id = $1 order by id', [account_id])
    ).map(({ external_id }) => external_id as string);

  test.each(['one batch', 'batches of their own'])(
    'count once for the same bytes, whatever the ids say: in %s',
    async (how) => {
      const account_id = v4();
      const replays = Array.from({ length: 20 }, (_, n) => unsigned(account_id, `kick:${n}`));
      const batches = how === 'one batch' ? [replays] : replays.map((one) => [one]);
      const messages = [];
      for (const batch of batches) messages.push((await live(batch)).length);
      expect(messages).toEqual(batches.map((_, n) => (n === 0 ? 1 : 0)));
      expect(await kept(account_id)).toEqual(['kick:0']);
      // A replay takes no id away from the delivery that it belongs to.
      expect(await live([unsigned(account_id, 'kick:7', { raw: '{"another":true}' })])).toHaveLength(1);
      expect(await kept(account_id)).toEqual(['kick:0', 'kick:7']);
    },
  );

  test('other bytes, accounts and platforms are other events, and a signed id decides alone', async () => {
    const [a, b] = [v4(), v4()];
    const signed = { same_raw: undefined };
    const page = [
      unsigned(a, 'kick:1'),
      unsigned(b, 'kick:1'),
      unsigned(a, 'trovo:1', { platform: 'trovo' }),
      unsigned(a, 'kick:2', { raw: `${BODY} ` }),
      unsigned(a, 'kick:3', signed),
      unsigned(a, 'kick:4', signed),
    ];
    expect(await live(page)).toHaveLength(6);
    expect(await live(page)).toEqual([]);
  });

  test('a shop’s bytes count once for each type', async () => {
    const account_id = v4();
    const order = (id: string, type: string) =>
      unsigned(account_id, id, { platform: 'shopify', type, same_raw: 'once_per_type' });
    const page = ['shopify:order', 'shopify:order_paid'].flatMap((type) => [
      order(`1:${type}`, type),
      order(`2:${type}`, type),
    ]);
    expect(await live(page)).toHaveLength(2);
    expect(await kept(account_id)).toEqual(['1:shopify:order', '1:shopify:order_paid']);
  });

  test('the first in the batch’s order wins, and a loser keeps neither its id nor its bytes', async () => {
    const account_id = v4();
    await live([unsigned(account_id, 'kick:old', { raw: '{"old":1}' })]);
    const page = [
      // Its id is taken: its bytes stay free for the next one.
      unsigned(account_id, 'kick:old', { raw: '{"n":1}' }),
      unsigned(account_id, 'kick:a', { raw: '{"n":1}' }),
      // Its bytes are taken: its id stays free.
      unsigned(account_id, 'kick:b', { raw: '{"old":1}' }),
      unsigned(account_id, 'kick:b', { raw: '{"n":2}' }),
      // A signed id in the same batch takes it before.
      unsigned(account_id, 'kick:c', { raw: '{"n":3}', same_raw: undefined }),
      unsigned(account_id, 'kick:c', { raw: '{"n":4}' }),
      unsigned(account_id, 'kick:d', { raw: '{"n":4}' }),
      // One id with two bodies, one body with two ids.
      unsigned(account_id, 'kick:e', { raw: '{"n":5}' }),
      unsigned(account_id, 'kick:e', { raw: '{"n":6}' }),
      unsigned(account_id, 'kick:f', { raw: '{"n":7}' }),
      unsigned(account_id, 'kick:g', { raw: '{"n":7}' }),
    ];
    expect(await live(page)).toHaveLength(6);
    const rows = await t.db.query(
      'select external_id, raw::text from platform_event_logs where account_id = $1 order by external_id',
      [account_id],
    );
    expect(rows.map(({ external_id, raw }) => [external_id, raw])).toEqual([
      ['kick:a', '{"n":1}'],
      ['kick:b', '{"n":2}'],
      ['kick:c', '{"n":3}'],
      ['kick:d', '{"n":4}'],
      ['kick:e', '{"n":5}'],
      ['kick:f', '{"n":7}'],
      ['kick:old', '{"old":1}'],
    ]);
  });

  test('a delivery that counted under its unsigned id before counts no second time under its signed one', async () => {
    const account_id = v4();
    const before = unsigned(account_id, 'trovo:header', { same_raw: undefined });
    const now = () => unsigned(account_id, 'trovo:body', { same_raw: undefined, former_id: 'trovo:header' });
    expect(await live([before])).toHaveLength(1);
    expect(await live([now(), now()])).toEqual([]);
    expect(await live([unsigned(account_id, 'trovo:next', { former_id: 'trovo:other' })])).toHaveLength(1);
    expect(await kept(account_id)).toEqual(['trovo:header', 'trovo:next']);
  });

  test('workers that meet the same bytes at once let one through', async () => {
    const account_id = v4();
    const pages = Array.from({ length: 6 }, (_, page) =>
      Array.from({ length: 30 }, (_, n) => unsigned(account_id, `kick:${page}-${n}`, { raw: `{"n":${n}}` })),
    );
    const said = await Promise.all(pages.map(live));
    expect(said.flat()).toHaveLength(30);
    expect(await kept(account_id)).toHaveLength(30);
    const held = await t.db.query('select 1 as one from ledger where account_id = $1', [account_id]);
    expect(held).toHaveLength(30);
  });

  test('a batch that fails claims nothing', async () => {
    const account_id = v4();
    const failing = t.db.transaction(async (tx) => {
      await applyRecords(eventLog, [unsigned(account_id, 'kick:1')], tx, { rebuilding: false });
      throw new Error('the process died');
    });
    await expect(failing).rejects.toThrow('died');
    expect(await live([unsigned(account_id, 'kick:2')])).toHaveLength(1);
  });

  test('what reads as erased tells nothing apart', async () => {
    const account_id = v4();
    const page = [1, 2].map((n) => unsigned(account_id, `kick:${n}`, { raw: ERASED_RAW }));
    expect(await live(page)).toHaveLength(2);
  });

  test('bytes are remembered for seven days', async () => {
    const account_id = v4();
    await live([unsigned(account_id, 'kick:1')]);
    const age = (days: number) =>
      t.db.query(`update ledger_bodies set taken_at = now() - make_interval(days => $2) where account_id = $1`, [
        account_id,
        days,
      ]);
    await age(6);
    expect(await trimBodies(t.db)).toBe(0);
    expect(await live([unsigned(account_id, 'kick:2')])).toEqual([]);
    await age(8);
    expect(await trimBodies(t.db)).toBe(1);
    expect(await live([unsigned(account_id, 'kick:3')])).toHaveLength(1);
  });
});

describe('through the log', () => {
  let t: TestDatabase;
  let on: Engines;
  let running: ReturnType<typeof runtimeOf> | undefined;
  beforeEach(async () => {
    t = await testDatabase(20);
    on = await engines(t.db);
  });
  afterEach(async () => {
    await running?.stop();
    await on.close();
    await t.drop();
  });
  const run = async () => {
    running = runtimeOf(t.db, on, [eventLog]);
    await running.start();
  };
  const rows = () => t.db.query('select id, external_id from platform_event_logs order by id');

  test('a restart forgets nothing, a rebuild makes the same winners, and a replay leaves the others out', async () => {
    const account = ACCOUNTS[0]!;
    const send = (n: number, given: object = {}) =>
      on.records.append(TOPICS.platform_events, [
        { ...record(account, ''), external_id: `kick:${n}`, raw: BODY, same_raw: 'once', ...given },
      ]);
    // A record of the build before says nothing of its bytes.
    await send(0, { same_raw: undefined, raw: '{"before":1}' });
    await send(1);
    await send(2);
    await run();
    await until(async () => (await rows()).length === 2);
    await running!.stop();
    // Read from the log's own bytes, by a process that has seen none of it.
    await on.close();
    on = await engines(t.db);
    await send(3);
    await send(4, { raw: '{"last":1}' });
    await run();
    await until(async () => (await rows()).length === 3);
    await running!.stop();
    const before = await rows();
    expect(before.map(({ external_id }) => external_id)).toEqual(['kick:0', 'kick:1', 'kick:4']);

    const replayed = async () => {
      const found: unknown[] = [];
      for await (const batch of replayTopic({ db: t.db, ...on }, { topic: TOPICS.platform_events }))
        found.push(...batch.map((one) => 'external_id' in one && one.external_id));
      return found.sort();
    };
    expect(await replayed()).toEqual(['kick:0', 'kick:1', 'kick:4']);
    // The second key is not kept for ever, and neither a rebuild nor a replay needs it.
    await t.db.query('truncate ledger_bodies');
    await rebuild({ db: t.db, ...on, projections: [eventLog], name: 'event-log' });
    expect(await rows()).toEqual(before);
    expect(await replayed()).toEqual(['kick:0', 'kick:1', 'kick:4']);
    // What no projector has seen yet counts as new.
    await send(5);
    expect(await replayed()).toEqual(['kick:0', 'kick:1', 'kick:4', 'kick:5']);
  });
});

describe('broadcasts', () => {
  test('a rebuild makes the same rows of their reports and looks, those without an event of their own included', async () => {
    const t = await testDatabase(20);
    const on = await engines(t.db);
    const account_id = ACCOUNTS[0]!;
    const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 10, minute)).toISOString();
    const turn = (name: string, id: string, occurred_at: string, source: object) => ({
      ...record(account_id, ''),
      ...{ type: `kick:${name}`, external_id: `kick:${name}:${id}`, occurred_at, raw: JSON.stringify({ id }) },
      ...source,
    });
    const statuses = () => t.db.query('select * from channel_status order by broadcast_id');
    const running = runtimeOf(t.db, on, [eventLog]);
    try {
      await on.records.append(TOPICS.platform_events, [
        turn('stream_online', 'former', at(0), {}),
        turn('stream_offline', 'former', at(1), {}),
        turn('stream_online', 'b', at(2), { reported_at: at(2) }),
        turn('stream_offline', 'b', at(4), { seen_at: at(6) }),
        turn('stream_online', 'b', at(2), { seen_at: at(7) }),
        turn('stream_offline', 'channel', at(20), { raw: '{}', reported_at: at(20) }),
        turn('stream_online', 'c', at(10), { reported_at: at(21) }),
      ]);
      await running.start();
      await until(async () =>
        (await statuses()).some(({ broadcast_id, is_online }) => broadcast_id === 'c' && is_online),
      );
      await running.stop();
      const before = await statuses();
      expect(before.map(({ broadcast_id, known_by }) => [broadcast_id, known_by])).toEqual([
        ...[['', 'report'], ['b', 'channel'], ['c', 'report'], ['former', 'report']], // prettier-ignore
      ]);
      await rebuild({ db: t.db, ...on, projections: [eventLog], name: 'event-log' });
      expect(await statuses()).toEqual(before);
    } finally {
      await running.stop();
      await on.close();
      await t.drop();
    }
  });
});

describe('the step to the second key', () => {
  test('knows the bytes of what came before, and the id inside a Trovo body', async () => {
    const t = await emptyDatabase();
    try {
      await migrate(t.url, { only: MIGRATIONS.map(({ name }) => name).filter((name) => name < '0022') });
      const account_id = v4();
      const at = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
      const log = async (platform: string, type: string, external_id: string, raw: string, days = 1) => {
        const id = v7();
        await t.db.query(
          `insert into platform_event_logs (id, account_id, type, platform, external_id, raw, created_at)
           values ($1, $2, $3, $4, $5, $6, $7)`,
          [id, account_id, type, platform, external_id, raw, at(days)],
        );
        await t.db.query(`insert into ingested_ids values ($1, 'platform-events', $2, $3)`, [
          account_id,
          external_id,
          id,
        ]);
      };
      const spell = '{"type":"channel.spell", "id":"", "data":{"eid":" e-1 ","id":"no"}, "ä":"\\u00e4"}';
      const order = '{"id":820982911946154508}';
      await log('trovo', 'trovo:spell', 'trovo:header-1', spell);
      await log('trovo', 'trovo:subscribe', 'trovo:header-2', '{"payload":{"event_id":17}}');
      await log('shopify', 'shopify:order', 'shopify:e-1', order);
      await log('kick', 'kick:gift', 'kick:1', BODY);
      await log('kick', 'kick:gift', 'kick:2', '{"long":"ago"}', 8);
      await migrate(t.url);

      const live = (batch: LoggedRecord[]) =>
        t.db.transaction((tx) => applyRecords(eventLog, batch, tx, { rebuilding: false }));
      const trovo = { platform: 'trovo', type: 'trovo:spell' };
      const shopify = { platform: 'shopify', same_raw: 'once_per_type' as const };
      expect(
        await live([
          unsigned(account_id, 'trovo:e-1', { ...trovo, raw: spell, same_raw: undefined }),
          unsigned(account_id, 'trovo:17', { ...trovo, raw: '{}', same_raw: undefined }),
          unsigned(account_id, 'trovo:header-9', { ...trovo, raw: spell }),
          unsigned(account_id, 'shopify:e-2', { ...shopify, type: 'shopify:order', raw: order }),
          unsigned(account_id, 'kick:3', { type: 'kick:gift' }),
        ]),
      ).toEqual([]);
      const new_ones = [
        unsigned(account_id, 'shopify:e-3', { ...shopify, type: 'shopify:order_paid', raw: order }),
        unsigned(account_id, 'kick:4', { raw: '{"long":"ago"}' }),
      ];
      expect(await live(new_ones)).toHaveLength(2);
    } finally {
      await t.drop();
    }
  });
});
