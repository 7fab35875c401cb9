import { v4, v7 } from 'uuid';
import { TOPICS } from '../../domain/common/records';
import { LOCKS } from '../../engines/locks/port';
import { migrate } from '../../engines/postgres/migrate';
import type { LoggedRecord } from '../../engines/records/port';
import { type ApplyMode, type RecordProjection, topic } from '../../kernel/projection';
import { MIGRATIONS } from '../../migrations';
import { applyRecords } from '../../projections/runtime/drive/apply';
import { ensureLedgerPartitions } from '../../projections/runtime/ledger/ledger';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database';
import { ACCOUNTS, engines, record, runtimeOf, until } from '../support/projections';

function logged(account_id: string, external_id: string | null, given: Partial<LoggedRecord> = {}): LoggedRecord {
  return { ...record(account_id, ''), external_id, topic: TOPICS.platform_events, partition: 0, offset: 0, ...given };
}

/** A projection that only remembers what it was given. */
function listening(name: string) {
  const given: { id: string; again: boolean | undefined }[] = [];
  const p: RecordProjection = {
    name,
    version: 1,
    from: topic(TOPICS.platform_events),
    tables: [],
    apply(batch, _tx, { again }: ApplyMode) {
      given.push(...batch.map(({ id }) => ({ id, again })));
      return Promise.resolve([]);
    },
  };
  return { p, given, ids: () => given.map(({ id }) => id) };
}

describe('the ledger of a projection', () => {
  let t: TestDatabase;
  beforeAll(async () => void (t = await testDatabase(20)));
  afterAll(() => t.drop());
  const live = (p: RecordProjection, batch: LoggedRecord[]) =>
    t.db.transaction((tx) => applyRecords(p, batch, tx, { rebuilding: false }));

  test('apply gets the first of each external id, and one that comes again as such', async () => {
    const account_id = v4();
    const { p, given, ids } = listening(v4());
    const [first, second, other] = ['x', 'x', 'y'].map((id) => logged(account_id, id));
    await live(p, [first!, second!]);
    await live(p, [second!, other!]);
    await live(p, [second!]);
    expect(given).toEqual([first!, other!].map(({ id }) => ({ id, again: false })));
    await live(p, [first!, second!, other!]);
    expect(given.slice(2)).toEqual([first!, other!].map(({ id }) => ({ id, again: true })));
    // Without an external id nothing tells whether it came before.
    const nameless = logged(account_id, null);
    await live(p, [nameless, nameless]);
    expect(given.slice(4)).toEqual([{ id: nameless.id, again: true }]);
    expect(ids()).toHaveLength(5);
  });

  test('looked for by accounts or one by one, the same is known and taken', async () => {
    const accounts = Array.from({ length: 3 }, () => v4());
    const { p } = listening(v4());
    const { topic: of } = p.from;
    const before = Array.from({ length: 60 }, (_, n) => logged(accounts[n % 3]!, `x${n % 20}`));
    await live(p, before);
    await t.db.query(
      `insert into ledger (projection, topic, account_id, external_id, record_id, taken_at)
       select $1, $2, account_id, 'old', gen_random_uuid(), now() - interval '1 year' from unnest($3::uuid[]) account_id
       union all select 'another', $2, account_id, 'new0', gen_random_uuid(), now() from unnest($3::uuid[]) account_id`,
      [p.name, of, accounts],
    );
    const asked = [
      ...before.slice(0, 7),
      ...accounts.flatMap((account) => ['x3', 'x19', 'old', 'new0', 'new1'].map((id) => logged(account, id))),
    ];
    const values = [asked.map((one) => one.account_id), asked.map((one) => one.external_id), asked.map(({ id }) => id)];
    const taken = async (name: string) => {
      const undone = new Error('undone');
      let seen: unknown;
      const take = t.db.transaction(async (tx) => {
        const known = await tx.query(
          `select id, own from ${name}($1, $2, $3::text[], $4::text[], $5::text[]) order by 1, 2`,
          [p.name, of, ...values],
        );
        const rows = 'select account_id, external_id, record_id from ledger where projection = $1 order by 1, 2, 3';
        seen = { known, rows: await tx.query(rows, [p.name]) };
        throw undone;
      });
      await expect(take).rejects.toBe(undone);
      return seen as { known: unknown[]; rows: unknown[] };
    };
    const together = await taken('ledger_take_by_account');
    expect(together).toEqual(await taken('ledger_take'));
    expect([together.known.length, together.rows.length]).toEqual([16, 60 + 3 + 6]);
  });

  test('is its own: two projections of one topic count the same records', async () => {
    const account_id = v4();
    const [one, other] = [listening(v4()), listening(v4())];
    const unsigned = logged(account_id, 'kick:1', { same_raw: 'once', raw: '{"n":1}' });
    await live(one.p, [unsigned]);
    await live(other.p, [unsigned, logged(account_id, 'kick:2', { same_raw: 'once', raw: '{"n":1}' })]);
    expect([one.ids(), other.ids()]).toEqual([[unsigned.id], [unsigned.id]]);
  });

  test('a rebuild asks and writes nothing', async () => {
    const account_id = v4();
    const { p, ids } = listening(v4());
    const [winner, loser, unknown] = ['x', 'x', 'z'].map((id) => logged(account_id, id));
    await live(p, [winner!]);
    const before = await t.db.query('select * from ledger order by record_id');
    await t.db.transaction((tx) => applyRecords(p, [loser!, unknown!, winner!], tx, { rebuilding: true }));
    expect(ids().slice(1)).toEqual([winner!.id]);
    expect(await t.db.query('select * from ledger order by record_id')).toEqual(before);
  });

  test('workers that meet the same ids at once let one through', async () => {
    const account_id = v4();
    const { p, ids } = listening(v4());
    const pages = Array.from({ length: 6 }, () => Array.from({ length: 40 }, (_, n) => logged(account_id, `x${n}`)));
    await Promise.all(pages.map((page) => live(p, page)));
    expect(ids()).toHaveLength(40);
  });

  test('an id is known in whichever quarter it was taken, and rows find the partition of their quarter', async () => {
    const account_id = v4();
    const { p, ids } = listening(v4());
    const old = logged(account_id, 'old');
    await t.db.query(
      `insert into ledger (projection, topic, account_id, external_id, record_id, taken_at)
       values ($1, $2, $3, 'old', $4, now() - interval '1 year')`,
      [p.name, TOPICS.platform_events, account_id, old.id],
    );
    await live(p, [logged(account_id, 'old'), logged(account_id, 'new')]);
    expect(ids()).toHaveLength(1);
    const parts = () =>
      t.db.query(
        `select external_id, tableoid::regclass::text ~ 'ledger_\\d{4}_q[1-4]' as timed from ledger where account_id = $1 order by 1`,
        [account_id],
      );
    expect(await parts()).toEqual([
      { external_id: 'new', timed: true },
      { external_id: 'old', timed: false },
    ]);
    const made = await Promise.all([1, 2, 3].map(() => ensureLedgerPartitions(t.db)));
    expect(made.sort()).toEqual([0, 0, 1]);
    expect((await parts()).map(({ timed }) => timed as boolean)).toEqual([true, true]);
    await live(p, [logged(account_id, 'old'), old]);
    expect(ids()).toHaveLength(2);
    // The place for next quarter is made ahead, each with its key.
    const [keys] = await t.db.query(`
      select count(*)::int as parts, count(*) filter (where exists (
        select from pg_index k where k.indrelid = i.inhrelid and k.indisunique))::int as keyed
      from pg_inherits i where i.inhparent = 'ledger'::regclass`);
    expect(keys!.keyed).toBe(keys!.parts);
  });

  test('an id that was taken under a clock days ahead is known again after the next upkeep', async () => {
    const account_id = v4();
    const { p, ids } = listening(v4());
    const early = logged(account_id, 'early');
    await t.db.query(
      `insert into ledger (projection, topic, account_id, external_id, record_id, taken_at)
       values ($1, $2, $3, 'early', $4, now() + interval '200 days')`,
      [p.name, TOPICS.platform_events, account_id, early.id],
    );
    // A backup reads rows after its snapshot: a row that moves meanwhile would be missing.
    const backup = await t.db.hold(LOCKS.backup, async () => {
      await ensureLedgerPartitions(t.db);
      return t.db.query(`select 1 from ledger where taken_at > now() + interval '1 day'`);
    });
    expect(backup).toHaveLength(1);
    await ensureLedgerPartitions(t.db);
    await live(p, [logged(account_id, 'early'), early]);
    expect(ids()).toEqual([early.id]);
    expect(await t.db.query(`select 1 from ledger where taken_at > now()`)).toEqual([]);
  });

  test('each partition that takes rows is made in a transaction of its own', async () => {
    const account_id = v4();
    await t.db.query(
      `insert into ledger (projection, topic, account_id, external_id, record_id, taken_at)
       select $1, $2, $3, n::text, $4, now() - make_interval(months => 24 + 3 * n) from generate_series(1, 3) n`,
      [v4(), TOPICS.platform_events, account_id, v4()],
    );
    const once = async () => (await t.db.query('select ensure_ledger_partitions(2) as made'))[0]!.made;
    expect([await once(), await once(), await once(), await once()]).toEqual([1, 1, 1, 0]);
    const rest = await t.db.query('select 1 from ledger_default where account_id = $1', [account_id]);
    expect(rest).toEqual([]);
  });

  test('upkeep of partitions holds up writers for 300 ms at most', async () => {
    const bounds = await t.db.query(
      `select proname::text as name, proconfig::text[] @> '{lock_timeout=300ms}' as short from pg_proc
       where proname ~ '^ensure_(ledger|event_log|stream_sample)_partitions$' order by 1`,
    );
    expect(bounds).toEqual(
      ['event_log', 'ledger', 'stream_sample'].map((of) => ({ name: `ensure_${of}_partitions`, short: true })),
    );
  });

  test('survives a lost checkpoint: what had counted counts again, what had not still does not', async () => {
    const on = await engines(t.db);
    const name = v4();
    const { p, ids } = listening(name);
    const account = ACCOUNTS[0]!;
    const sent = ['a', 'b', 'a'].map((external_id) => ({
      ...record(account, ''),
      external_id: `${name} ${external_id}`,
    }));
    await on.records.append(TOPICS.platform_events, sent);
    const [a, b] = sent.map(({ id }) => id);
    const mine = () => ids().filter((id) => sent.some((one) => one.id === id));
    let running = runtimeOf(t.db, on, [p]);
    await running.start();
    await until(() => mine().length === 2);
    await running.stop();
    await t.db.query('delete from checkpoints where projection = $1', [name]);
    running = runtimeOf(t.db, on, [p]);
    await running.start();
    await until(() => mine().length === 4);
    await running.stop();
    expect(mine()).toEqual([a, b, a, b]);
    await on.close();
  });
});

describe('the step to the ledger', () => {
  const stepsBelow = (number: string) => ({ only: MIGRATIONS.map(({ name }) => name).filter((name) => name < number) });
  /** What the build before takes into its ledger; returns what counts. */
  const taken = (t: TestDatabase, account_id: string, external_ids: string[]) =>
    t.db.query(
      `insert into ingested_ids (account_id, topic, external_id, record_id)
         select account_id, $4, external_id, id from (
           select unnest($1::text[])::uuid as id, unnest($2::text[])::uuid as account_id, unnest($3::text[]) as external_id) i
         where external_id is not null
         on conflict do nothing returning record_id`,
      [external_ids.map(() => v7()), external_ids.map(() => account_id), external_ids, TOPICS.platform_events],
    );
  const claimed = (t: TestDatabase, account_id: string, body: string) =>
    t.db.query(
      `insert into ingested_bodies (account_id, body, record_id)
         select * from (select unnest($1::text[])::uuid as account_id, unnest($2::text[]) as body, unnest($3::text[])::uuid as id) c
         order by account_id, body
         on conflict do nothing returning record_id`,
      [[account_id], [body], [v7()]],
    );

  test('forgets nothing, whichever build took it, and the two go on beside each other', async () => {
    const t = await emptyDatabase();
    try {
      const account_id = v4();
      await migrate(t.url, stepsBelow('0040'));
      expect(await taken(t, account_id, ['before'])).toHaveLength(1);
      expect(await claimed(t, account_id, 'kick:before')).toHaveLength(1);
      await migrate(t.url, stepsBelow('0041'));
      expect(await taken(t, account_id, ['before', 'between'])).toHaveLength(1);
      expect(await claimed(t, account_id, 'kick:between')).toHaveLength(1);
      // The rows of before are read through while somebody writes.
      await t.db.transaction(async (tx) => {
        await tx.query(`insert into ingested_ids values ($1, $2, 'meanwhile', $3)`, [
          account_id,
          TOPICS.platform_events,
          v7(),
        ]);
        await migrate(t.url, stepsBelow('0042'));
      });
      await migrate(t.url);

      const { p, ids } = listening('event-log');
      const live = (...external_ids: string[]) =>
        t.db.transaction((tx) =>
          applyRecords(
            p,
            external_ids.map((id) => logged(account_id, id)),
            tx,
            { rebuilding: false },
          ),
        );
      await live('before', 'between', 'meanwhile', 'new');
      expect(ids()).toHaveLength(1);
      // The build before is told of what this one took, and this one of what that one takes now.
      expect(await taken(t, account_id, ['before', 'meanwhile', 'new', 'late', 'late'])).toHaveLength(1);
      await live('late', 'later');
      expect(ids()).toHaveLength(2);
      expect(await t.db.query(`select external_id from ingested_ids order by 1`)).toHaveLength(6);
      // A restore brings each row back without looking for it: partitions that it makes have no keys yet.
      await t.db.transaction(async (tx) => {
        await tx.query(`select set_config('lumio.restoring', 'on', true)`);
        const before = `insert into ledger select projection, topic, account_id, external_id, record_id, '-infinity'
          from ledger where external_id = 'new' returning 1 as one`;
        expect(await tx.query(before)).toHaveLength(1);
        await tx.query(`delete from ledger where external_id = 'new' and taken_at = '-infinity'`);
      });

      for (const body of ['kick:before', 'kick:between']) expect(await claimed(t, account_id, body)).toEqual([]);
      expect(await claimed(t, account_id, 'kick:late')).toHaveLength(1);
      expect(await t.db.query('select body from ledger_bodies order by 1')).toHaveLength(3);
      await t.db.query(`delete from ingested_bodies where taken_at < now() + interval '1 day'`);
      expect(await t.db.query('select body from ledger_bodies')).toEqual([]);
    } finally {
      await t.drop();
    }
  });
});
