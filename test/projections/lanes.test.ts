import { TOPICS } from '../../domain/common/records';
import type { BrokerRecord } from '../../engines/broker/port';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Queryable } from '../../engines/postgres/port';
import type { RecordProjection } from '../../kernel/projection';
import { splitIntoLanes } from '../../projections/runtime/drive/lanes';
import type { TestDatabase } from '../support/database';
import { keptLog } from '../support/log';
import { allMessages } from '../support/outbox';
import { ACCOUNTS, type Engines, fold, opened, record, rowsOf, runtimeOf, tally, until } from '../support/projections';
import { talliedDatabase } from '../support/tallied';

let t: TestDatabase;
let on: Engines;

const { publish, total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]));

describe('a batch in lanes', () => {
  const stored = (partition: number, offset: number) => ({ topic: 'topic', partition, offset }) as BrokerRecord;
  const batchOf = (counts: readonly number[]) => {
    const records = counts.flatMap((count, partition) => Array.from({ length: count }, (_, n) => stored(partition, n)));
    const progress = new Map(counts.map((count, partition) => [partition, { from: 0, to: count }]));
    return { topic: 'topic', records, progress };
  };
  const lanes = (counts: readonly number[]) => {
    const batch = batchOf(counts);
    const undecodable = batch.records
      .filter(({ offset }) => offset % 10 === 3)
      .map((one) => ({
        item: { kind: 'undecodable' as const, stored: one },
        reason: 'undecodable' as const,
        error: '',
      }));
    const items = batch.records
      .filter(({ offset }) => offset % 10 !== 3)
      .map((one) => ({ kind: 'record' as const, record: one as never, stored: one }));
    return splitIntoLanes(batch, { items, undecodable });
  };

  test('is one while it is small, or of one partition', () => {
    expect(lanes([40, 40, 40])).toHaveLength(1);
    expect(lanes([500])).toHaveLength(1);
  });

  test('has whole partitions in each, in their order, none twice, and about as many records', () => {
    const counts = [300, 10, 90, 0, 200];
    const made = lanes(counts);
    expect(made.map(({ items, undecodable }) => items.length + undecodable.length)).toEqual([300, 300]);
    expect(made.flatMap(({ moves }) => moves.map(({ partition }) => partition)).sort()).toEqual([0, 1, 2, 3, 4]);
    for (const { moves, items, undecodable } of made) {
      const mine = new Set(moves.map(({ partition }) => partition));
      const places = items.map((item) => ('stored' in item ? item.stored : undefined)!);
      expect(
        places
          .concat(undecodable.map(({ item }) => ('stored' in item ? item.stored : undefined)!))
          .every(({ partition }) => mine.has(partition)),
      ).toBe(true);
      expect(moves.map(({ partition, from, to }) => [from, to, counts[partition]])).toEqual(
        moves.map(({ to }) => ['0', to, Number(to)]),
      );
      for (const partition of mine) {
        const offsets = places.filter((place) => place.partition === partition).map(({ offset }) => offset);
        expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
      }
    }
  });
});

test('two are at work at once, and when one is cut off the other stays: nothing is lost, nothing doubled', async () => {
  const plain = tally();
  let at_work = 0;
  let most = 0;
  let cut = false;
  let both!: () => void;
  const met = new Promise<void>((resolve) => (both = resolve));
  const p: RecordProjection = {
    ...plain,
    async apply(batch, tx: Queryable, mode) {
      at_work += 1;
      most = Math.max(most, at_work);
      if (at_work === 2) both();
      try {
        const messages = await plain.apply(batch, tx, mode);
        await met;
        if (!cut) {
          cut = true;
          await tx.query('select pg_terminate_backend(pg_backend_pid())');
        }
        return messages;
      } finally {
        at_work -= 1;
      }
    },
  };
  await opened(t.db, on, [p]);
  const published = await publish(600);
  const pool = new PostgresDatabase({ url: t.url, name: 'lanes', pipeline: true });
  const runtime = runtimeOf(pool, on, [p]);
  await runtime.start();
  await until(async () => (await total()) === 600);
  await runtime.stop();
  await pool.close();
  expect([most, cut]).toEqual([2, true]);
  expect(await rowsOf(t.db)).toEqual(fold(published));
  const messages = await allMessages(t.db);
  expect(messages).toHaveLength(600);
  for (const account_id of ACCOUNTS) {
    const mine = messages.filter(({ channel }) => channel === `events:${account_id}`);
    expect(mine.map(({ seq }) => seq)).toEqual(mine.map((_, n) => n + 1));
    expect(mine.map(({ data }) => (JSON.parse(data as string) as { id: string }).id)).toEqual(
      published.flatMap(([owner, id]) => (owner === account_id ? [id] : [])),
    );
  }
});

test('one that cannot go on is tried again more and more rarely, though the other one gets on', async () => {
  const p = tally();
  await opened(t.db, on, [p]);
  await on.records.append(TOPICS.platform_events, [record(ACCOUNTS[0]!, 'bug:js')]);
  await publish(400);
  const log = keptLog();
  const failures = () =>
    log.lines.flatMap(({ message, facts }) =>
      message === 'projection is stopped' ? [(facts as { failures: number }).failures] : [],
    );
  const runtime = runtimeOf(t.db, on, [p], { log });
  await runtime.start();
  for (let round = 0; round < 3; round += 1) {
    const [applied, failed] = [await total(), failures().length];
    if (round > 0) await publish(400);
    await until(async () => (await total()) > applied && failures().length > failed);
  }
  expect(runtime.lag()[0]!.state).toBe('stopped');
  await runtime.stop();
  expect(failures()).toEqual(failures().map((_, n) => n + 1));
});
