import { v7 as uuid } from 'uuid';
import { PROJECTIONS } from '../../bin/areas';
import { TOPICS } from '../../domain/common/records';
import { listDeadLetters } from '../../projections/runtime/dead-letter/dead-letters';
import { HistoryGone, rebuild, RebuildRunning, type RebuildOptions } from '../../projections/runtime/rebuild/rebuild';
import { LockLost } from '../../engines/locks/port';
import { keepRebuildsAway } from '../../projections/runtime/rebuild/lock';
import type { TestDatabase } from '../support/database';
import {
  ACCOUNTS,
  type Engines,
  eventTally,
  fold,
  opened,
  rowsOf,
  runtimeOf,
  tally,
  until,
} from '../support/projections';
import { talliedDatabase } from '../support/tallied';

let t: TestDatabase;
let on: Engines;

const { publish, total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]));

const rebuildOf = (options: Partial<RebuildOptions> = {}) =>
  rebuild({ db: t.db, ...on, projections: [tally(), eventTally()], name: 'tally', batch_records: 50, ...options });

/** Everything about the tables that a rebuild must leave as it was. */
const structure = () =>
  t.db.query(
    `select c.relname, c.relkind, pg_get_expr(c.relpartbound, c.oid) as bound, pg_get_partkeydef(c.oid) as part_key,
       (select array_agg(indexrelid::regclass::text || pg_get_indexdef(indexrelid) order by indexrelid::regclass::text) from pg_index where indrelid = c.oid) as indexes,
       (select array_agg(conname || pg_get_constraintdef(oid) order by conname) from pg_constraint where conrelid = c.oid) as constraints,
       (select array_agg(format('%s %s %s %s', attname, format_type(atttypid, atttypmod), attnotnull, attidentity) order by attnum)
        from pg_attribute where attrelid = c.oid and attnum > 0) as columns
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relname like '%tally%' and c.relkind in ('r', 'p') order by 1`,
  );

const shadows = async () => (await t.db.query(`select nspname from pg_namespace where nspname like 'rebuild%'`)).length;

test('under live traffic the rows are the fold, no reader sees a gap, and the structure is the same', async () => {
  const before = await structure();
  await opened(t.db, on, [tally()]);
  const published = await publish(1500);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 1500);
  // What only a rebuild mends.
  await t.db.query(`update tally set digest = 'spoilt' where owner = $1`, [ACCOUNTS[0]]);
  const wrong = ACCOUNTS[0]!;

  let live = true;
  const traffic = (async () => {
    while (live) published.push(...(await publish(8)));
  })();
  let least = 1500;
  const reading = (async () => {
    while (live) {
      const seen = await total();
      expect(seen).toBeGreaterThanOrEqual(least);
      least = seen;
    }
  })();
  const result = await rebuildOf();
  expect(result.records).toBeGreaterThanOrEqual(1500);
  expect(result.parked).toBe(0);
  await rebuildOf();
  live = false;
  await Promise.all([traffic, reading]);
  await until(async () => (await total()) === published.length);
  await runtime.stop();
  expect(await rowsOf(t.db)).toEqual(fold(published));
  expect((await rowsOf(t.db)).find(({ owner }) => owner === wrong)!.digest).not.toBe('spoilt');
  expect(await structure()).toEqual(before);
  expect(await shadows()).toBe(0);
  // A rebuild makes no message again.
  expect((await t.db.query('select count(*) as n from outbox'))[0]!.n).toBe(published.length);
});

test('a projection over domain events, of a newer version: built anew by itself, then driven on', async () => {
  const happened: [string, string][] = [];
  const happen = async () => {
    const id = uuid();
    await on.events.append(
      [{ stream: `s${happened.length % 3}`, expected: 'any', events: [{ id, type: 'thing:happened', data: {} }] }],
      {},
    );
    happened.push([`s${happened.length % 3}`, id]);
  };
  for (let n = 0; n < 60; n += 1) await happen();
  const old = runtimeOf(t.db, on, [eventTally()]);
  await old.start();
  await until(async () => (await total('event_tally')) === 60);
  await old.stop();
  await t.db.query(`update event_tally set digest = 'of version 1'`);
  const projections = [eventTally('event_tally', 2)];
  const runtime = runtimeOf(t.db, on, projections, { build_records: 7 });
  await runtime.start();
  await until(() => runtime.lag()[0]!.state === 'running');
  await happen();
  await until(async () => (await total('event_tally')) === 61);
  await runtime.stop();
  expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened));
});

test('what is parked live stays unapplied in the new tables', async () => {
  const published = await publish(30);
  await publish(1, 'poison:sql');
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 30 && (await listDeadLetters(t.db)).length === 1);
  const mended = {
    ...tally(),
    apply: ((batch, tx, mode) =>
      tally().apply(
        batch.map((r) => ({ ...r, raw: '1' })),
        tx,
        mode,
      )) as ReturnType<typeof tally>['apply'],
  };
  await rebuildOf({ projections: [mended] });
  expect(await rowsOf(t.db)).toEqual(fold(published));
  expect(await listDeadLetters(t.db)).toHaveLength(1);
  await runtime.stop();
});

test('what fails only in the rebuild is parked at the swap', async () => {
  const published = await publish(30);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 30);
  await runtime.stop();
  const bad = published[11]![1];
  const picky = {
    ...tally(),
    apply: ((batch, tx, mode) =>
      tally().apply(
        batch.map((r) => (r.id === bad ? { ...r, raw: '"poison:sql"' } : r)),
        tx,
        mode,
      )) as ReturnType<typeof tally>['apply'],
  };
  expect(await rebuildOf({ projections: [picky] })).toMatchObject({ parked: 1 });
  expect(await rowsOf(t.db)).toEqual(fold(published.filter(([, id]) => id !== bad)));
  expect(await listDeadLetters(t.db)).toMatchObject([{ reason: 'poison', projection: 'tally' }]);
});

test('is refused while another runs, while its rows are changed apart, and when history is gone', async () => {
  await publish(80);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 80);
  await runtime.stop();
  await t.db.transaction(async (tx) => {
    await keepRebuildsAway(tx, 'tally');
    await expect(rebuildOf()).rejects.toThrow(RebuildRunning);
  });
  const both = await Promise.allSettled([rebuildOf({ batch_records: 5 }), rebuildOf({ batch_records: 5 })]);
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  await on.broker.trim(TOPICS.platform_events, 1, 1);
  const { earliest } = (await on.broker.bounds(TOPICS.platform_events)).get(1)!;
  expect(earliest).toBeGreaterThan(0);
  await expect(rebuildOf()).rejects.toThrow(HistoryGone);
  await expect(rebuildOf({ name: 'nobody' })).rejects.toThrow(/known: tally, event_tally/);
  expect(await total()).toBe(80);
});

describe('its lock', () => {
  let published: [string, string][];
  beforeEach(async () => {
    published = await publish(200);
    const runtime = runtimeOf(t.db, on, [tally()]);
    await runtime.start();
    await until(async () => (await total()) === 200);
    await runtime.stop();
  });
  const end_lock = `select count(*) as n, bool_and(xact_start is null) as outside, bool_and(pg_terminate_backend(pid, 10000)) as ended
    from pg_stat_activity where application_name = 'lumio lock' and datname = current_database()`;

  test('sits in no transaction that an alert would name; when it is ended all the same, the rebuild ends', async () => {
    let ended: Promise<unknown> | undefined;
    let pages = 0;
    const running = rebuildOf({
      batch_records: 1,
      onProgress: () => {
        pages += 1;
        ended ??= t.db.query(end_lock);
      },
    });
    await expect(running).rejects.toThrow(LockLost);
    expect(await ended).toEqual([{ n: 1, outside: true, ended: true }]);
    expect(pages).toBeLessThan(200);
    expect(await rowsOf(t.db)).toEqual(fold(published));
    // Run again it drops the leftover and ends.
    expect(await rebuildOf()).toMatchObject({ records: 200 });
    expect(await shadows()).toBe(0);
  });

  test('lost at the last moment, with an erasure in between: what was erased does not come back with the new tables', async () => {
    const erase = async () => {
      await t.db.query(end_lock);
      await t.db.transaction(async (tx) => {
        await keepRebuildsAway(tx, 'tally');
        await tx.query('delete from tally where owner = $1', [ACCOUNTS[0]]);
      });
    };
    // Between the replay and the swap.
    let reads = 0;
    const query = t.db.query.bind(t.db);
    const db = Object.assign(Object.create(t.db) as typeof t.db, {
      query: async (text: string, ...rest: [(readonly unknown[])?, string?]) => {
        if (text.startsWith('analyze') && (reads += 1) === 1) await erase();
        return query(text, ...rest);
      },
    });
    await expect(rebuildOf({ db })).rejects.toThrow(LockLost);
    expect(reads).toBe(1);
    expect((await rowsOf(t.db)).map(({ owner }) => owner)).not.toContain(ACCOUNTS[0]);
  });
});

test('a lost shadow stops it and never touches the live tables', async () => {
  const published = await publish(200);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 200);
  await runtime.stop();
  // Every write takes this lock first: the drop waits for those in hand, and is never in a deadlock with them.
  const drop = () =>
    t.db.transaction(async (tx) => {
      await tx.query('lock table rebuild_tally.rebuild_run');
      await tx.query('drop schema rebuild_tally cascade');
    });
  let dropped: Promise<unknown> | undefined;
  const running = rebuildOf({ batch_records: 10, onProgress: () => (dropped ??= drop()) });
  await expect(running).rejects.toThrow();
  await dropped;
  expect(await rowsOf(t.db)).toEqual(fold(published));
});

test('a long reader delays the swap, not the others', async () => {
  const published = await publish(50);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 50);
  const reader = await t.db.pool.connect();
  await reader.query('begin; select * from tally');
  const running = rebuildOf({ lock_timeout_ms: 50 });
  for (let n = 0; n < 5; n += 1) {
    published.push(...(await publish(8)));
    await until(async () => (await total()) === published.length);
  }
  await reader.query('commit');
  reader.release();
  await running;
  await runtime.stop();
  expect(await rowsOf(t.db)).toEqual(fold(published));
});

test('readers who take its tables in another order neither keep the swap away nor are ended by it', async () => {
  await t.db.query('create table tally_notes (note text); create table tally_marks (mark text)');
  const tables = ['tally', 'tally_marks', 'tally_notes'];
  const published = await publish(50);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 50);
  let live = true;
  const read = async (seconds: number) => {
    while (live) {
      await t.db.query(`select 1 from tally_notes, tally_marks, tally, pg_sleep(${seconds}) limit 1`);
    }
  };
  const reading = Promise.all([0.021, 0.034, 0.055].map(read));
  await Promise.race([reading, rebuildOf({ projections: [{ ...tally(), tables }] })]);
  live = false;
  await reading;
  await runtime.stop();
  expect(await rowsOf(t.db)).toEqual(fold(published));
});

test.each(PROJECTIONS.map(({ name }) => name))('the tables of %s can be cloned and swapped', async (name) => {
  expect(await rebuildOf({ projections: PROJECTIONS, name })).toMatchObject({ records: 0, parked: 0 });
});
