import type { ChannelMessage } from '../projections/projection';
import { tailOutbox, trimOutbox, writeOutbox } from '../projections/outbox';
import { type TestDatabase, testDatabase } from './support/database';
import { seeded, until } from './support/projections';

let t: TestDatabase;
beforeEach(async () => (t = await testDatabase(20)));
afterEach(() => t.drop());

const message = (channel: string, n: number): ChannelMessage => ({
  channel,
  event_type: 'x:y',
  data: JSON.stringify({ n }),
});

test('staged: the transaction that wrote first is seen first; who comes later waits for its commit', async () => {
  const slow = await t.db.pool.connect();
  const write = (channel: string) => t.db.transaction((tx) => writeOutbox(tx, [message(channel, 1)]));
  await slow.query('begin');
  await slow.query('select outbox_write($1, $2, $3)', [
    ['a', 'b'],
    ['x:y', 'x:y'],
    ['1', '2'],
  ]);
  const fast = write('b');
  await until(async () => {
    const [row] = await t.db.query(
      `select count(*) as n from pg_locks where locktype = 'advisory' and not granted
       and database = (select oid from pg_database where datname = current_database())`,
    );
    return row!.n === 1;
  });
  expect(await tailOutbox(t.db, 0, 10)).toEqual([]);
  await slow.query('commit');
  slow.release();
  await fast;
  const rows = await tailOutbox(t.db, 0, 10);
  expect(rows.map(({ channel, seq }) => `${channel}${seq}`)).toEqual(['a1', 'b1', 'b2']);
});

test('a rolled-back writer leaves no hole in any channel', async () => {
  await t.db.transaction((tx) => writeOutbox(tx, [message('a', 1)]));
  const undone = t.db.transaction(async (tx) => {
    await writeOutbox(tx, [message('a', 2), message('a', 3)]);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  await t.db.transaction((tx) => writeOutbox(tx, [message('a', 4)]));
  expect((await tailOutbox(t.db, 0, 10)).map(({ seq }) => seq)).toEqual([1, 2]);
});

test('eight writers at once: the tail misses nothing, and every channel is numbered without a hole', async () => {
  const writers = 8;
  const rounds = 25;
  let writing = true;
  const written = Promise.all(
    Array.from({ length: writers }, async (_, w) => {
      const random = seeded(w + 1);
      for (let round = 0; round < rounds; round += 1) {
        const messages = Array.from({ length: 1 + Math.floor(random() * 20) }, (_m, n) =>
          message(`c${Math.floor(random() * 5)}`, n),
        );
        await t.db.transaction(async (tx) => {
          await tx.query('select pg_sleep($1)', [random() / 200]);
          await writeOutbox(tx, messages);
        });
      }
    }),
  ).finally(() => (writing = false));
  const seen: { channel: string; seq: number; id: number }[] = [];
  for (let after = 0, last = false; ;) {
    const rows = await tailOutbox(t.db, after, 50);
    seen.push(...rows);
    after = rows.at(-1)?.id ?? after;
    if (rows.length === 0) {
      if (last) break;
      last = !writing;
    }
  }
  await written;
  expect(seen).toHaveLength((await t.db.query('select count(*) as n from outbox'))[0]!.n as number);
  const next = new Map<string, number>();
  for (const { channel, seq } of seen) {
    expect(seq).toBe((next.get(channel) ?? 0) + 1);
    next.set(channel, seq);
  }
  const heads = await t.db.query('select channel, seq from channel_heads');
  expect(new Map(heads.map(({ channel, seq }) => [channel, seq]))).toEqual(next);
});

test('text comes back as it was given', async () => {
  const data = '{"n":820982911946154508,"s":"\\u0000 \\"quoted\\" \\\\ {a,b} NULL 🙂"}';
  await t.db.transaction((tx) => writeOutbox(tx, [{ channel: 'a,{}"\\', event_type: 'NULL', data }]));
  expect(await tailOutbox(t.db, 0, 1)).toMatchObject([{ channel: 'a,{}"\\', event_type: 'NULL', data }]);
});

test('trimming takes the old ones, keeps the newest and every head', async () => {
  await t.db.transaction((tx) =>
    writeOutbox(
      tx,
      Array.from({ length: 12_000 }, (_, n) => message(`c${n % 3}`, n)),
    ),
  );
  await t.db.query(`update outbox set created_at = created_at - interval '1 hour'`);
  await t.db.transaction((tx) => writeOutbox(tx, [message('c0', 1)]));
  expect(await trimOutbox(t.db, 60_000)).toBe(12_000);
  expect((await tailOutbox(t.db, 0, 10)).map(({ seq }) => seq)).toEqual([4001]);
  expect(await trimOutbox(t.db, -60_000)).toBe(0);
  await t.db.transaction((tx) => writeOutbox(tx, [message('c1', 1)]));
  expect((await tailOutbox(t.db, 12_001, 10)).map(({ seq }) => seq)).toEqual([4001]);
});
