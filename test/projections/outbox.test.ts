import { randomUUID } from 'node:crypto';
import { LOCKS } from '../../engines/locks/port';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { migrate } from '../../engines/postgres/migrate';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { MIGRATIONS } from '../../migrations';
import type { ChannelMessage } from '../../kernel/projection';
import { writeOutbox } from '../../projections/runtime/outbox/outbox';
import { createOutboxLock } from '../../projections/runtime/outbox/lock';
import { allMessages, BEGINNING, readTail } from '../support/outbox';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database';
import { seeded, until } from '../support/projections';

let t: TestDatabase;
beforeEach(async () => (t = await testDatabase(20)));
afterEach(() => t.drop());

const message = (channel: string, n: number): ChannelMessage => ({
  channel,
  event_type: 'x:y',
  data: JSON.stringify({ n }),
});

/** Sessions that wait for an advisory lock. */
async function waiting({ db }: TestDatabase): Promise<number> {
  const [row] = await db.query(
    `select count(*) as n from pg_locks where locktype = 'advisory' and not granted
     and database = (select oid from pg_database where datname = current_database())`,
  );
  return row!.n as number;
}

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
  await until(async () => (await waiting(t)) === 1);
  expect(await allMessages(t.db)).toEqual([]);
  await slow.query('commit');
  slow.release();
  await fast;
  const rows = await allMessages(t.db);
  expect(rows.map(({ channel, seq }) => `${channel}${seq}`)).toEqual(['a1', 'b1', 'b2']);
});

describe('the lock of the outbox', () => {
  const names = MIGRATIONS.map(({ name }) => name);
  const before = names.slice(0, names.indexOf('0024-outbox-lock'));
  const until_shards = names.slice(0, names.indexOf('0120-outbox-shards'));
  const write = (on: TestDatabase, channel: string) =>
    on.db.transaction((tx) => writeOutbox(tx, [message(channel, 1)]));
  const old_call = `select outbox_write(array['a'], array['x:y'], array['{}'])`;
  /** An append of a command's. */
  async function append({ db }: TestDatabase) {
    const store = await createPostgresEventStore({ pool: db.pool, wakeups: createLocalWakeups() });
    const events = [{ id: randomUUID(), type: 'x:y', data: {} }];
    await store.append([{ stream: 's', expected: 'any', events }], {}).finally(() => store.close());
  }

  test('staged: calls from before the step, one at work and one that waits, keep their order with those after it', async () => {
    const upgraded = await emptyDatabase();
    try {
      await migrate(upgraded.url, { only: before });
      const [working, late] = [await upgraded.db.pool.connect(), await upgraded.db.pool.connect()];
      await working.query('begin');
      await working.query(old_call);
      await late.query('begin');
      const late_call = late.query(old_call);
      await until(async () => (await waiting(upgraded)) === 1);
      expect(await migrate(upgraded.url, { only: until_shards })).toContain('0024-outbox-lock');

      const alone = createOutboxLock(upgraded.db);
      expect(await alone()).toBe(false);
      const fresh = upgraded.db.transaction((tx) => tx.query(old_call));
      const rows = () => upgraded.db.query('select id, seq from outbox order by id');
      await until(async () => (await waiting(upgraded)) === 2);
      await working.query('commit');
      await late_call;
      // Its row has a number and is not to be seen yet: whoever writes now must wait for it.
      await until(async () => (await waiting(upgraded)) === 1);
      expect(await rows()).toEqual([{ id: 1, seq: 1 }]);
      expect(await alone()).toBe(false);
      await late.query('commit');
      await fresh;
      expect(await rows()).toEqual([1, 2, 3].map((n) => ({ id: n, seq: n })));
      working.release();
      late.release();
      expect(await alone()).toBe(true);
      expect(await createOutboxLock(upgraded.db)()).toBe(true);
    } finally {
      await upgraded.drop();
    }
  });

  test('while it is alone, no command waits for a projector, and each projector for the other', async () => {
    const projector = await t.db.pool.connect();
    await until(createOutboxLock(t.db));
    await projector.query('begin');
    await projector.query(old_call);
    await append(t);
    const other = write(t, 'a');
    await until(async () => (await waiting(t)) === 1);
    await append(t);
    await projector.query('commit');
    projector.release();
    await other;
    expect((await allMessages(t.db)).map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('a transaction of before holds it up, and only that', async () => {
    await t.db.query(`insert into installation (name, value) values ('outbox_lock', 'both')`);
    const session = await t.db.pool.connect();
    await session.query('begin');
    await session.query('select 1');
    const alone = createOutboxLock(t.db);
    expect(await alone()).toBe(false);
    const later = await t.db.pool.connect();
    await later.query('begin');
    await later.query('select 1');
    expect(await alone()).toBe(false);
    const [{ both }] = (await t.db.query(
      `select count(*) > 0 as both from pg_locks where locktype = 'advisory' and objid = any($1)`,
      [[LOCKS.event_order, LOCKS.outbox_order]],
    )) as [{ both: boolean }];
    expect(both).toBe(false);
    await session.query('commit');
    expect(await alone()).toBe(true);
    await later.query('commit');
    session.release();
    later.release();
  });
});

test('a rolled-back writer leaves no hole in any channel', async () => {
  await t.db.transaction((tx) => writeOutbox(tx, [message('a', 1)]));
  const undone = t.db.transaction(async (tx) => {
    await writeOutbox(tx, [message('a', 2), message('a', 3)]);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  await t.db.transaction((tx) => writeOutbox(tx, [message('a', 4)]));
  expect((await allMessages(t.db)).map(({ seq }) => seq)).toEqual([1, 2]);
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
  for (let after = BEGINNING, last = false; ;) {
    const page = await readTail(t.db, after, 50);
    seen.push(...page.heard);
    after = page.places;
    if (page.messages === 0) {
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
  expect(await allMessages(t.db)).toMatchObject([{ channel: 'a,{}"\\', event_type: 'NULL', data }]);
});
