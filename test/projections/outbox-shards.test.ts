import { randomUUID } from 'node:crypto';
import { partitionOf } from '../../engines/broker/partitioner';
import { migrate } from '../../engines/postgres/migrate';
import type { ChannelMessage } from '../../kernel/projection';
import { hashOfName, SHARDS, shardOf } from '../../lib/hash/shards';
import { MIGRATIONS } from '../../migrations';
import { writeOutbox } from '../../projections/runtime/outbox/outbox';
import { createOutboxOrder, keepsOneOrder } from '../../projections/runtime/outbox/order';
import { rotateOutboxPartitions } from '../../projections/runtime/outbox/partitions';
import { SubscribedChannels } from '../../realtime/runtime/delivery/subscribed-channels';
import { Outbox } from '../../realtime/runtime/delivery/outbox';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database';
import { allMessages, BEGINNING, readTail } from '../support/outbox';
import { timeLimit } from '../support/patience';
import { seeded, until } from '../support/projections';

let t: TestDatabase;
beforeEach(async () => (t = await testDatabase(20)));
afterEach(() => t.drop());

const message = (channel: string, n = 1): ChannelMessage => ({
  channel,
  event_type: 'x:y',
  data: JSON.stringify({ n }),
});
const write = (channels: readonly string[]) =>
  t.db.transaction((tx) =>
    writeOutbox(
      tx,
      channels.map((channel, n) => message(channel, n)),
    ),
  );

/** A channel of each of two shards. */
const [ONE, OTHER] = ['events:one', 'events:two'] as const;

const waiting = async (on: TestDatabase = t): Promise<number> =>
  (
    await on.db.query(
      `select 1 as one from pg_locks where locktype = 'advisory' and not granted
       and database = (select oid from pg_database where datname = current_database())`,
    )
  ).length;

/** Reads what comes after `after` as long as `writing`, and then to the end. */
async function tailWhile(writing: () => boolean): Promise<{ channel: string; seq: number }[]> {
  const seen: { channel: string; seq: number }[] = [];
  for (let after = BEGINNING; ;) {
    const last = !writing();
    const page = await readTail(t.db, after, 50);
    seen.push(...page.heard);
    after = page.places;
    if (last && page.messages === 0) return seen;
  }
}

function expectDense(seen: readonly { channel: string; seq: number }[]): void {
  const next = new Map<string, number>();
  for (const { channel, seq } of seen) {
    expect(`${channel} ${seq}`).toBe(`${channel} ${(next.get(channel) ?? 0) + 1}`);
    next.set(channel, seq);
  }
}

describe('the shard of a channel', () => {
  test('is that of its account, by the hash that chooses the partition of its records', async () => {
    for (let n = 0; n < 200; n += 1) {
      const account = randomUUID();
      const shard = shardOf(`events:${account}`);
      expect(shardOf(`chat:${account}`)).toBe(shard);
      expect(shardOf(`ext-storage:${randomUUID()}`, account)).toBe(shard);
      // While partitions are 2, 4 … 64, projectors of two of them never write to one shard.
      for (const partitions of [1, 2, 8, 64]) expect(shard % partitions).toBe(partitionOf(account, partitions));
    }
  });

  test('is the same in the database, for builds that do not say it', async () => {
    const names = [...Array(50)].flatMap((_, n) => [`events:${randomUUID()}`, `x:${'y'.repeat(n)}`, `ü${n}`]);
    const rows = await t.db.query('select outbox_shard(name) as shard from unnest($1::text[]) name', [names]);
    expect(rows.map(({ shard }) => shard)).toEqual(names.map((name) => shardOf(name)));
    expect(new Set(names.map((name) => shardOf(name))).size).toBeGreaterThan(SHARDS / 2);
  });
});

describe('writers', () => {
  test('of two shards do not wait for each other, and those of one do', async () => {
    expect(shardOf(ONE)).not.toBe(shardOf(OTHER));
    let same: Promise<unknown> | undefined;
    await t.db.transaction(async (tx) => {
      await writeOutbox(tx, [message(ONE)]);
      await write([OTHER]);
      same = write([OTHER, ONE]);
      await until(async () => (await waiting()) === 1);
    });
    await same;
    expect((await allMessages(t.db)).map(({ channel, seq }) => [channel, seq])).toEqual([
      [ONE, 1],
      [OTHER, 1],
      [OTHER, 2],
      [ONE, 2],
    ]);
  });

  test.each(['alone', 'in one order'])(
    'of many shards at once, %s: nothing is missed, no one ends in a deadlock',
    async (how) => {
      if (how === 'in one order') {
        await t.db.query(`insert into installation (name, value) values ('outbox_one_order', 'kept')`);
      }
      let writing = true;
      const written = Promise.all(
        Array.from({ length: 8 }, async (_, w) => {
          const random = seeded(w + 1);
          for (let round = 0; round < 20; round += 1) {
            const channels = Array.from(
              { length: 1 + Math.floor(random() * 20) },
              () => `c${Math.floor(random() * 40)}`,
            );
            await t.db.transaction(async (tx) => {
              await tx.query('select pg_sleep($1)', [random() / 200]);
              await writeOutbox(
                tx,
                channels.map((channel) => message(channel)),
              );
              await tx.query('select pg_sleep($1)', [random() / 200]);
            });
          }
        }),
      ).finally(() => (writing = false));
      // As builds before read it: by one order of ids.
      const by_one_order = (async () => {
        const ids: number[] = [];
        for (let after = 0; ;) {
          const last = !writing;
          const rows = await t.db.query<{ id: number }>('select id from outbox where id > $1 order by id limit 50', [
            after,
          ]);
          ids.push(...rows.map(({ id }) => id));
          after = rows.at(-1)?.id ?? after;
          if (last && rows.length === 0) return ids;
        }
      })();
      const seen = await tailWhile(() => writing);
      await written;
      expectDense(seen);
      const all = await allMessages(t.db);
      expect(seen).toHaveLength(all.length);
      const read = await by_one_order;
      // By one order of ids nothing is missed either where it is kept; where not, nobody reads so.
      expect(how === 'in one order' ? read.length : all.length).toBe(all.length);
    },
  );
});

describe('beside a build that reads by one order of ids', () => {
  const names = MIGRATIONS.map(({ name }) => name);
  const before = names.slice(0, names.indexOf('0120-outbox-shards'));
  const old_call = `select outbox_write(array['${ONE}'], array['x:y'], array['{}'])`;

  test('staged: calls from before the step, one at work and one that waits, are read in their order', async () => {
    const upgraded = await emptyDatabase();
    try {
      await migrate(upgraded.url, { only: before });
      await upgraded.db.query(old_call);
      const [working, late] = [await upgraded.db.pool.connect(), await upgraded.db.pool.connect()];
      await working.query('begin');
      await working.query(old_call);
      await late.query('begin');
      const late_call = late.query(old_call);
      await until(async () => (await waiting(upgraded)) === 1);
      const step = migrate(upgraded.url);
      await until(
        async () =>
          (await upgraded.db.query(`select 1 as one from pg_locks where locktype = 'relation' and not granted`))
            .length > 0,
      );
      const outbox = new Outbox(upgraded.db, 60_000);
      await working.query('commit');
      expect(await step).toContain('0120-outbox-shards');
      // The one that waited writes after the step by the text of before it.
      await late_call;
      const after = await outbox.end();
      const fresh = upgraded.db.transaction((tx) => writeOutbox(tx, [message(ONE)]));
      await until(async () => (await waiting(upgraded)) === 1);
      expect(await readTail(upgraded.db, after, 10)).toMatchObject({ heard: [], messages: 0 });
      await late.query('commit');
      await fresh;
      working.release();
      late.release();
      const page = await readTail(upgraded.db, after, 10);
      expect(page.heard.map(({ seq }) => seq)).toEqual([3, 4]);
      expect(page.more).toBe(false);
      expect((await readTail(upgraded.db, page.places, 10)).messages).toBe(0);
      const resumed = await outbox.page(ONE, 0, { messages: 10, bytes: 1_000 });
      expect(resumed.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    } finally {
      await upgraded.drop();
    }
  });

  test('the one order is kept until it was gone for long enough, and again when it is back', async () => {
    await t.db.query(`insert into installation (name, value) values ('outbox_one_order', 'kept')`);
    await t.db.query('insert into outbox_heads (shard, id) values (64, 9223372036854775807)');
    let now = 0;
    const look = createOutboxOrder(t.db, 60_000, () => now);
    const old = await t.db.pool.connect();
    await old.query(`set application_name = 'lumio wakeups'`);
    const steps: boolean[] = [];
    for (now of [0, 100_000]) steps.push(await look());
    await old.query(`reset application_name`);
    for (now of [100_001, 159_999]) steps.push(await look());
    expect(steps).toEqual([false, false, false, false]);
    now = 160_000;
    expect([await look(), await keepsOneOrder(t.db)]).toEqual([true, false]);
    expect(await t.db.query('select 1 as one from outbox_heads where shard = 64')).toEqual([]);
    await old.query(`set application_name = 'lumio wakeups'`);
    expect([await look(), await keepsOneOrder(t.db)]).toEqual([false, true]);
    await old.query(`reset application_name`);
    old.release();
  });

  test('time in which the database was away, or this process stood still, is no quiet', async () => {
    await t.db.query(`insert into installation (name, value) values ('outbox_one_order', 'kept')`);
    let now = 0;
    let away = false;
    const query: typeof t.db.query = async (...asked: Parameters<typeof t.db.query>) =>
      away ? Promise.reject(new Error('away')) : t.db.query(...asked);
    const look = createOutboxOrder({ query } as typeof t.db, 60_000, () => now);
    expect(await look()).toBe(false);
    away = true;
    for (now of [30_000, 59_000]) await expect(look()).rejects.toThrow('away');
    away = false;
    for (now of [60_000, 118_999]) expect([now, await look()]).toEqual([now, false]);
    for (now of [178_999, 238_998]) expect([now, await look()]).toEqual([now, false]);
    now = 238_999;
    expect([await look(), await keepsOneOrder(t.db)]).toEqual([true, false]);
  });
});

describe('the tail of a node', () => {
  test('brings the data of what is heard here, and of the rest that it is there', async () => {
    const heard = new SubscribedChannels<true>();
    for (let n = 0; n < 10_000; n += 1) heard.set(`events:here-${n}`, true);
    await write(['events:here-1', 'events:there', 'events:here-9999', 'events:there']);
    const page = await new Outbox(t.db, 60_000).tail(BEGINNING, heard.filter(), { messages: 100, bytes: 1e9 });
    expect(page.heard.map(({ channel, data }) => [channel, data])).toEqual([
      ['events:here-1', '{"n":0}'],
      ['events:here-9999', '{"n":2}'],
    ]);
    expect(page.unsubscribed).toBe('events:there 1\nevents:there 2');
    expect(page).toMatchObject({ messages: 4, more: false });
    expect(page.places[shardOf('events:there')]).toBe(4);
  });

  test('asks for a set of names in constant time, whatever comes and goes', () => {
    const heard = new SubscribedChannels<true>();
    const has = (name: string) => {
      const bits = heard.filter();
      const bit = hashOfName(name) & (bits.length * 8 - 1);
      return (bits[bit >> 3]! & (1 << (bit & 7))) !== 0;
    };
    const names = Array.from({ length: 5_000 }, (_, n) => `events:${n}`);
    for (const name of names) heard.set(name, true).set(name, true);
    expect(names.every(has)).toBe(true);
    expect(names.filter((name) => has(`no ${name}`)).length).toBeLessThan(500);
    for (const name of names.slice(100)) heard.delete(name);
    expect(names.slice(0, 100).every(has)).toBe(true);
    expect(names.filter(has).length).toBeLessThan(500);
    expect(heard.filter().length).toBeLessThan(2_000);
    heard.clear();
    expect(names.some(has)).toBe(false);
  });

  test('finds rows by their shard alone, in tables without statistics: 10,000 names, 64 shards, many young rows', async () => {
    const names = Array.from({ length: 10_000 }, (_, n) => `events:${n}`);
    for (let n = 0; n < 4; n += 1) await write(names);
    const heard = new SubscribedChannels<true>();
    for (const name of names) heard.set(name, true);
    const outbox = new Outbox(t.db, 60_000);
    const end = await outbox.end();
    await write(names.slice(0, 500));
    const counted = `select sum(seq_scan)::int as scans, sum(seq_tup_read + idx_tup_fetch)::int as rows
      from pg_stat_xact_user_tables where relname like 'outbox_20%' or relname = 'outbox_default'`;
    await t.db.transaction(async (tx) => {
      const [before] = await tx.query(counted);
      const page = await new Outbox(tx, 60_000).tail(end, heard.filter(), { messages: 1_000, bytes: 1e9 });
      expect(page.heard).toHaveLength(500);
      const [after] = await tx.query(counted);
      expect(after!.scans - before!.scans).toBe(0);
      expect(after!.rows - before!.rows).toBeLessThan(700);
    });
    // One shard far behind and all others at their end: no more is read than one page.
    const behind = end.map((place, shard) => (shard === 5 ? 0 : place));
    await t.db.transaction(async (tx) => {
      const [before] = await tx.query(counted);
      expect((await readTail(tx, behind, 100)).more).toBe(true);
      const [after] = await tx.query(counted);
      expect(after!.rows - before!.rows).toBeLessThan(250);
    });
  });

  test('pages of a shard that is behind reach its end, and nothing is brought twice', async () => {
    const names = Array.from({ length: 300 }, (_, n) => `events:${n % 70}`);
    for (let n = 0; n < 5; n += 1) await write(names);
    let after = BEGINNING;
    const seen: { channel: string; seq: number }[] = [];
    for (let pages = 0; ; pages += 1) {
      expect(pages).toBeLessThan(100);
      const page = await readTail(t.db, after, 100);
      seen.push(...page.heard);
      expect(page.heard.length).toBeLessThanOrEqual(100);
      after = page.places;
      if (!page.more) break;
    }
    expect(seen).toHaveLength(1_500);
    expectDense(seen);
  });
});

describe('partitions', () => {
  const partitions = async () =>
    (
      await t.db.query<{ name: string }>(
        `select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'outbox'::regclass and c.relname <> 'outbox_default' order by 1`,
      )
    ).map(({ name }) => name);
  /** Makes a partition of an hour that is over, with a message in it for each of these channels. */
  async function past(hours: number, channels: readonly string[]): Promise<void> {
    const at = `date_trunc('hour', now()) - interval '${hours} hours'`;
    await t.db.query(`do $$ begin execute format('create table outbox_past_${hours} partition of outbox
      for values from (%L) to (%L)', ${at}, ${at} + interval '1 hour'); end $$`);
    await t.db.query(`create unique index on outbox_past_${hours} (channel, seq);`);
    await t.db.query(`create index on outbox_past_${hours} (shard, id)`);
    await write(channels);
    await t.db.query(
      `with moved as (delete from outbox where created_at > now() - interval '10 seconds' returning *)
       insert into outbox select id, channel, seq, event_type, data, ${at} + interval '30 minutes', trace, shard, name_hash
       from moved`,
    );
  }

  test('one is dropped when its youngest message is too old, and not before; channels go on where they were', async () => {
    await past(3, [ONE, ONE, OTHER]);
    await past(2, [ONE]);
    const places = BEGINNING;
    expect(await rotateOutboxPartitions(t.db, 12 * 3_600_000)).toEqual([]);
    expect(await rotateOutboxPartitions(t.db, 2 * 3_600_000)).toEqual(['outbox_past_3']);
    expect((await allMessages(t.db)).map(({ channel, seq }) => [channel, seq])).toEqual([[ONE, 3]]);
    expect(await rotateOutboxPartitions(t.db, 3_600_000)).toEqual(['outbox_past_2']);
    // A node that was away for so long passes what is gone, and does not ask for it again and again.
    const page = await readTail(t.db, places, 10);
    expect(page).toMatchObject({ heard: [], more: false });
    expect((await readTail(t.db, page.places, 10)).messages).toBe(0);
    await write([ONE, OTHER]);
    expect((await allMessages(t.db)).map(({ channel, seq }) => [channel, seq])).toEqual([
      [ONE, 4],
      [OTHER, 2],
    ]);
  });

  test('the number of a message is given once, also across partitions', async () => {
    await past(3, [ONE, ONE, OTHER]);
    await past(2, [ONE, OTHER]);
    await write([ONE, OTHER, ONE]);
    const numbers = await t.db.query(
      `select o.channel, count(*) as n, count(distinct o.seq) as numbers, max(o.seq) as newest, max(h.seq) as head
       from outbox o join channel_heads h using (channel) group by 1 order by 1`,
    );
    expect(numbers).toEqual([
      { channel: ONE, n: 5, numbers: 5, newest: 5, head: 5 },
      { channel: OTHER, n: 3, numbers: 3, newest: 3, head: 3 },
    ]);
  });

  test('the next are made in time, by one of many', async () => {
    const made = (await partitions()).length;
    await Promise.all([1, 2, 3].map(() => rotateOutboxPartitions(t.db, 86_400_000)));
    const later = await partitions();
    expect(later.length).toBeGreaterThan(made);
    await rotateOutboxPartitions(t.db, 86_400_000);
    expect(await partitions()).toEqual(later);
    await write([ONE]);
    expect(await t.db.query('select 1 as one from outbox_default')).toEqual([]);
  });

  test('what came at a time that had none is read, moves, and goes when it is too old', async () => {
    for (const name of await partitions()) await t.db.query(`drop table ${name}`);
    await write([ONE, OTHER]);
    expect(await allMessages(t.db)).toHaveLength(2);
    await t.db.query(`update outbox_default set created_at = created_at - interval '2 hours' where channel = $1`, [
      OTHER,
    ]);
    await rotateOutboxPartitions(t.db, 660_000);
    expect((await allMessages(t.db)).map(({ channel }) => channel)).toEqual([ONE]);
    expect(await t.db.query('select 1 as one from outbox_default')).toEqual([]);
  });

  test('a reader who holds one holds up writers no longer than the drop may wait', async () => {
    await past(3, [ONE]);
    await t.db.transaction(async (tx) => {
      await tx.query('select * from outbox');
      const dropping = rotateOutboxPartitions(t.db, 3_600_000).then(
        () => null,
        (error: { code?: string }) => error.code,
      );
      const started = performance.now();
      await write([ONE]);
      expect(performance.now() - started).toBeLessThan(timeLimit(3_000));
      expect(await dropping).toBe('55P03');
    });
    expect(await rotateOutboxPartitions(t.db, 3_600_000)).toEqual(['outbox_past_3']);
  });
});

test('heads that an earlier restore left out are made by a step, behind what was written without them', async () => {
  const restored = await emptyDatabase();
  try {
    const names = MIGRATIONS.map(({ name }) => name);
    await migrate(restored.url, { only: names.slice(0, names.indexOf('0230-outbox-heads')) });
    await migrate(restored.url, { steps: [] });
    const [kept] = await restored.db.query('delete from outbox_heads where shard <> $1 returning 1 as one', [
      shardOf(OTHER),
    ]);
    expect(kept).toEqual({ one: 1 });
    for (const channel of [ONE, OTHER]) {
      await restored.db.transaction((tx) => writeOutbox(tx, [message(channel)]));
    }
    await migrate(restored.url);
    const heads = `select shard, id from outbox_heads where shard < 64 order by shard`;
    const rows = await restored.db.query<{ shard: number; id: number }>(heads);
    expect(rows.map(({ shard }) => shard)).toEqual([...Array(64).keys()]);
    expect(rows.filter(({ id }) => id > 0).map(({ shard }) => shard)).toEqual(
      [shardOf(ONE), shardOf(OTHER)].sort((a, b) => a - b),
    );
    const after = await new Outbox(restored.db, 60_000).end();
    expect((await readTail(restored.db, after, 10)).messages).toBe(0);
    await restored.db.transaction((tx) => writeOutbox(tx, [message(ONE), message(OTHER)]));
    expect((await readTail(restored.db, after, 10)).heard.map(({ seq }) => seq)).toEqual([2, 2]);
  } finally {
    await restored.drop();
  }
});
