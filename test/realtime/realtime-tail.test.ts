import { outboxCheck } from '../../api/health/health-checks';
import { textArray } from '../../engines/postgres/port';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { writeOutbox } from '../../projections/runtime/outbox/outbox';
import { SubscribedChannels } from '../../realtime/runtime/delivery/subscribed-channels';
import { Outbox, type PageBounds, type TailPage } from '../../realtime/runtime/delivery/outbox';
import { Tail } from '../../realtime/runtime/delivery/tail';
import { until } from '../contracts/event-store';
import { testDatabase, type TestDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { ALL_HEARD, BEGINNING } from '../support/outbox';

let t: TestDatabase;
beforeEach(async () => {
  t = await testDatabase(2);
});
afterEach(() => t.drop());

const message = (data: string, channel = 'events:a') => ({ channel, event_type: 'kick:follower', data });
const write = (data: string) => t.db.transaction((tx) => writeOutbox(tx, [message(data)]));

/** A tail of these channels; `asked` is called between a statement's answer and the tail's hearing of it. */
function tailing(asked: { end?: () => void; tail?: (page: TailPage) => Promise<void> }) {
  const outbox = new Outbox(t.db, 60_000);
  const wakeups = createLocalWakeups();
  const delivered: string[] = [];
  const channels = new SubscribedChannels<true>();
  const quiet = () => undefined;
  const counts = { ends: 0, tails: 0, bodies: 0 };
  const tail = new Tail({
    outbox: {
      async end() {
        const end = await outbox.end();
        counts.ends += 1;
        asked.end?.();
        return end;
      },
      async tail(after, heard, bounds) {
        const page = await outbox.tail(after, heard, bounds);
        counts.tails += 1;
        await asked.tail?.(page);
        return page;
      },
      bodies(missing) {
        counts.bodies += 1;
        return outbox.bodies(missing);
      },
    },
    wakeups,
    log: silentLog,
    metrics: { tail_rows: { inc: quiet }, tail_lag: { set: quiet } } as never,
    channels,
    deliver: ({ data, channel }) => void (channels.has(channel) && delivered.push(data)),
    saturated: () => false,
  });
  const stop = () => tail.stop().then(() => wakeups.close());
  return { tail, wakeups, delivered, channels, counts, stop };
}

test('a node that cannot read the outbox is unhealthy until it can', async () => {
  const { tail, stop } = tailing({});
  await tail.ready;
  const { check } = outboxCheck(tail, 2_500);
  const is = async (status: string) => (await check()).status === status;
  await until(() => is('healthy'), 'a first reading');
  const heads = await t.db.query<{ shard: number; id: number }>('delete from outbox_heads returning shard, id');
  await until(() => is('unhealthy'), 'the missing heads');
  for (const { shard, id } of heads) await t.db.query('insert into outbox_heads values ($1, $2)', [shard, id]);
  await until(() => is('healthy'), 'the heads');
  await stop();
});

test('rows that nobody listens to are passed by; those that came while a channel opened are not', async () => {
  const asked: { end?: () => void } = {};
  const { tail, wakeups, delivered, channels, counts, stop } = tailing(asked);
  await tail.ready;
  await write('1');
  const before = counts.ends;
  // The first one may have begun before the row was written.
  await until(() => {
    wakeups.notify('outbox');
    return counts.ends > before + 1;
  }, 'a look at the end');
  asked.end = () => void channels.set('events:a', true);
  await write('2');
  wakeups.notify('outbox');
  await until(() => delivered.length > 0, 'the row that came while the channel opened');
  await write('3');
  wakeups.notify('outbox');
  await until(() => delivered.length > 1, 'a row of an open channel');
  expect(delivered).toEqual(['2', '3']);
  await stop();
});

test('a channel opened between the statement and its answer gets what lay in between, and before anything later', async () => {
  const asked: { tail?: (page: TailPage) => Promise<void> } = {};
  const { tail, wakeups, delivered, channels, counts, stop } = tailing(asked);
  await tail.ready;
  channels.set('events:other', true);
  asked.tail = async ({ messages }) => {
    // The answer says of these rows no more than that they are there.
    if (channels.has('events:a') || messages < 3) return;
    channels.set('events:a', true);
    await write('"later"');
  };
  await t.db.transaction((tx) => writeOutbox(tx, [message('1'), message('2', 'events:other'), message('3')]));
  wakeups.notify('outbox');
  await until(() => delivered.length > 2, 'what was missing');
  expect(delivered.slice(0, 3)).toEqual(['1', '2', '3']);
  wakeups.notify('outbox');
  await until(() => delivered.length > 3, 'what came later');
  expect(delivered.slice(3)).toEqual(['"later"']);
  expect(counts.bodies).toBe(1);
  await stop();
});

describe('pages hold so many bytes, whatever the page before held', () => {
  const SMALL = 1_200;
  const LARGE = 40;
  const bytes = 64 * 1024;
  let outbox: Outbox;
  beforeEach(async () => {
    outbox = new Outbox(t.db, 60_000);
    const data = [
      ...Array<string>(SMALL).fill('"ä"'),
      ...Array<string>(LARGE).fill(JSON.stringify('ä'.repeat(10_000))),
    ];
    await t.db.query('select outbox_write($1, $2, $3)', [
      textArray(data.map(() => 'events:a')),
      textArray(data.map(() => 'kick:follower')),
      textArray(data),
    ]);
  });
  /** As the tail, from one message on: all are of one shard, and their ids are their numbers. */
  const tailed = async (after: number, bounds: PageBounds) =>
    (
      await outbox.tail(
        BEGINNING.map(() => after),
        ALL_HEARD,
        bounds,
      )
    ).heard;
  const resumed = (after: number, bounds: PageBounds) => outbox.page('events:a', after, bounds);

  test.each([
    ['the tail', tailed],
    ['a resume', resumed],
  ])('%s', async (_name, read) => {
    const first = await read(0, { messages: 1_000, bytes });
    expect(first).toHaveLength(1_000);
    const sizes: number[] = [];
    for (let after = 1_000; ;) {
      const rows = await read(after, { messages: 1_000, bytes });
      if (rows.length === 0) break;
      expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_row, index) => after + index + 1));
      after = rows.at(-1)!.seq;
      sizes.push(rows.reduce((sum, row) => sum + Buffer.byteLength(row.data), 0));
    }
    // 200 small ones and 4 large, then 4 large each: the row that passes the bound is the last.
    expect(sizes).toEqual([80_808, ...Array<number>(9).fill(80_008)]);
    expect(await read(SMALL, { messages: 1_000, bytes: 1 })).toHaveLength(1);
  });
});
