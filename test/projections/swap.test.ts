import type { EventProjection, Projection, RecordProjection } from '../../kernel/projection';
import { openCheckpoints, readCheckpoints } from '../../projections/runtime/checkpoint/checkpoints';
import { createReadModels } from '../../projections/runtime/status/read-models';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { keepRebuildsAway } from '../../projections/runtime/rebuild/lock';
import { createReadModelAvailability } from '../../projections/runtime/status/read-model-availability';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Queryable } from '../../engines/postgres/port';
import type { TestDatabase } from '../support/database';
import { allMessages } from '../support/outbox';
import { keptLog } from '../support/log';
import {
  engines,
  type Engines,
  eventTally,
  fold,
  opened,
  rowsOf,
  runtimeOf,
  tally,
  until,
} from '../support/projections';
import { type Entries, talliedDatabase } from '../support/tallied';

let t: TestDatabase;
let on: Engines;

const { publish, happen, total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]), 30);

/** What version 2 makes of an id. */
const second = (id: string) => `second ${id}`;
const secondFold = (entries: Entries) => fold(entries.map(([owner, id]) => [owner, second(id)] as const));

interface Watched {
  p: RecordProjection;
  /** Records that were applied in builds. */
  built: number;
}
/** Version 2 of the tally; `pause` is awaited before each page of a build. */
function tally2(pause: (page: number) => Promise<void> = async () => undefined): Watched {
  const plain = tally('tally', 2);
  let pages = 0;
  const watched: Watched = {
    built: 0,
    p: {
      ...plain,
      async apply(batch, tx, mode) {
        if (mode.rebuilding) await pause((pages += 1));
        const messages = await plain.apply(
          batch.map((one) => ({ ...one, id: second(one.id) })),
          tx,
          mode,
        );
        if (mode.rebuilding) watched.built += batch.length;
        return messages;
      },
      program: 'second',
    },
  };
  return watched;
}
const eventTally2 = (): EventProjection => {
  const plain = eventTally('event_tally', 2);
  return {
    ...plain,
    apply: (batch, tx, mode) =>
      plain.apply(
        batch.map((one) => ({ ...one, id: second(one.id) })),
        tx,
        mode,
      ),
  };
};

const shadows = async () =>
  (await t.db.query(`select count(*)::int as n from pg_namespace where nspname like 'rebuild%'`))[0]!.n as number;
const versionsOf = async (p: Projection) => [
  ...new Set([...(await readCheckpoints(t.db, p)).values()].map(({ version }) => version)),
];

test('two builds under traffic: the newer is built beside the older and swaps itself in; taken away, and back', async () => {
  const projections = [tally(), eventTally()];
  await opened(t.db, on, projections);
  const log = keptLog();
  const older = runtimeOf(t.db, on, projections, { log });
  await older.start();
  const published = await publish(1000);
  const happened = await happen(60);
  await until(async () => (await total()) === 1000 && (await total('event_tally')) === 60);

  let live = true;
  const traffic = (async () => {
    while (live) {
      published.push(...(await publish(8)));
      happened.push(...(await happen(1)));
    }
  })();
  let least = 1000;
  let most_shadows = 0;
  const reading = (async () => {
    while (live) {
      const seen = await total();
      expect(seen).toBeGreaterThanOrEqual(least);
      least = seen;
      most_shadows = Math.max(most_shadows, await shadows());
    }
  })();
  const [others, again] = [await engines(t.db), await engines(t.db)];
  const newer = [others, again].map((one) => runtimeOf(t.db, one, [tally2().p, eventTally2()], { build_records: 50 }));
  await Promise.all(newer.map((runtime) => runtime.start()));
  await until(
    async () => (await versionsOf(tally())).join() === '2' && (await versionsOf(eventTally())).join() === '2',
  );
  await until(() => older.lag().every(({ state }) => state === 'superseded'));
  live = false;
  await Promise.all([traffic, reading]);
  expect(most_shadows).toBe(1);
  await until(async () => (await total()) === published.length && (await total('event_tally')) === happened.length);

  // Taken away again: the older one answers reads, and neither projects nor builds.
  await Promise.all(newer.map((runtime) => runtime.stop()));
  const kept = await rowsOf(t.db);
  published.push(...(await publish(40)));
  happened.push(...(await happen(5)));
  await until(() => older.lag().every(({ behind }) => behind > 0));
  expect(older.lag().map(({ state }) => state)).toEqual(['superseded', 'superseded']);
  expect(await rowsOf(t.db)).toEqual(kept);
  expect(await shadows()).toBe(0);
  expect(log.lines.filter(({ message }) => message.includes('version 2 is live'))).toHaveLength(2);
  await expect(rebuild({ db: t.db, ...on, projections, name: 'tally' })).rejects.toThrow('version 2 is live');

  const back = runtimeOf(t.db, others, [tally2().p, eventTally2()]);
  await back.start();
  await until(async () => (await total()) === published.length && (await total('event_tally')) === happened.length);
  await back.stop();
  await older.stop();
  await Promise.all([others.close(), again.close()]);
  expect(await rowsOf(t.db)).toEqual(secondFold(published));
  expect(await rowsOf(t.db, 'event_tally')).toEqual(secondFold(happened));
  // Each was announced once, by whoever drove then.
  const announced = (await allMessages(t.db)).map(({ data }) => (JSON.parse(data).id as string).slice(-36));
  expect(announced.sort()).toEqual([...published, ...happened].map(([, id]) => id).sort());
});

describe('a build beside the live tables', () => {
  let published: Entries;
  beforeEach(async () => {
    published = await publish(400);
    const first = runtimeOf(t.db, on, [tally()]);
    await first.start();
    await until(async () => (await total()) === 400);
    await first.stop();
  });

  /** Starts version 2 and stops it in the middle of its build; how many records that one had built. */
  async function interrupted(): Promise<number> {
    let arrive: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => (arrive = resolve));
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const half = tally2(async (page) => {
      if (page < 10) return;
      arrive();
      await ended;
    });
    const runtime = runtimeOf(t.db, on, [half.p], { build_records: 20 });
    await runtime.start();
    await reached;
    expect(runtime.lag()[0]!.state).toBe('building');
    const stopped = runtime.stop();
    end();
    await stopped;
    expect(await versionsOf(tally())).toEqual([1]);
    expect(await rowsOf(t.db)).toEqual(fold(published));
    return half.built;
  }

  async function finished(watched = tally2()): Promise<number> {
    const runtime = runtimeOf(t.db, on, [watched.p], { build_records: 20 });
    await runtime.start();
    await until(() => runtime.lag()[0]!.state === 'running');
    await runtime.stop();
    expect(await rowsOf(t.db)).toEqual(secondFold(published));
    expect(await shadows()).toBe(0);
    expect(await t.db.query('select 1 from projection_builds')).toEqual([]);
    return watched.built;
  }

  test('that was interrupted goes on where it was', async () => {
    const before = await interrupted();
    expect(before).toBeGreaterThanOrEqual(180);
    expect(await finished()).toBe(400 - before);
  });

  test('ends on connections of its own, however short the bound of the others is', async () => {
    const bounded = new PostgresDatabase({ url: t.url, name: 'bounded', size: 8, query_timeout_ms: 1000 });
    const watched = tally2();
    const p = { ...watched.p, loaded: async (tx: Queryable) => void (await tx.query('select pg_sleep(1.5)')) };
    const runtime = runtimeOf(bounded, on, [p], { build_db: t.db });
    await runtime.start();
    await until(() => runtime.lag()[0]!.state === 'running');
    await runtime.stop();
    await bounded.close();
    expect(await rowsOf(t.db)).toEqual(secondFold(published));
    expect(watched.built).toBe(400);
  });

  test('that failed between two late indexes goes on with the second', async () => {
    await t.db.query(`create function planted(text) returns text immutable language sql as 'select $1'`);
    await t.db.query('create index tally_first on tally (owner)');
    await t.db.query('create index tally_second on tally (planted(owner))');
    await t.db.query(`
      create or replace function planted(text) returns text immutable language plpgsql
      as $$ begin raise 'planted'; end $$`);
    const watched = tally2();
    const p = { ...watched.p, late_indexes: ['tally_first', 'tally_second'] };
    const build = () => rebuild({ db: t.db, ...on, projections: [p], name: 'tally' });
    const first = `select c.oid::int8 as oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relname = 'tally_first' and n.nspname <> 'public'`;
    await expect(build()).rejects.toThrow('planted');
    const [made] = await t.db.query<{ oid: number }>(first);
    await t.db.query(`
      create or replace function planted(text) returns text immutable language plpgsql
      as $$ begin return $1; end $$`);
    await build();
    expect(watched.built).toBe(400);
    const indexes = await t.db.query<{ name: string; oid: number }>(
      `select indexrelid::regclass::text as name, indexrelid::int8 as oid from pg_index
       where indrelid = 'tally'::regclass and indexrelid::regclass::text like 'tally_%' order by name`,
    );
    expect(indexes.map(({ name }) => name)).toEqual(expect.arrayContaining(['tally_first', 'tally_second']));
    expect(indexes.find(({ name }) => name === 'tally_first')).toEqual({ name: 'tally_first', oid: made!.oid });
    expect(await rowsOf(t.db)).toEqual(secondFold(published));
    await t.db.query('drop index tally_first, tally_second; drop function planted');
  });

  test('begins anew when live rows were changed beside their source meanwhile', async () => {
    await interrupted();
    await t.db.transaction((tx) => keepRebuildsAway(tx, 'tally'));
    expect(await finished()).toBe(400);
  });

  test('begins anew under another program of its version, and over tables of another shape', async () => {
    await interrupted();
    const mended = tally2();
    mended.p = { ...mended.p, program: 'second, mended' };
    await t.db.query(`alter table tally add column note text`);
    expect(await finished(mended)).toBe(400);
    expect(await t.db.query('select note from tally limit 1')).toEqual([{ note: null }]);
  });

  test('is not begun without space for it; the live rows serve, and it is built once there is', async () => {
    const log = keptLog();
    let free = 1024;
    const runtime = runtimeOf(t.db, on, [tally2().p], { log, freeBytes: async () => free });
    await runtime.start();
    await until(() => runtime.lag()[0]!.state === 'stopped');
    expect(log.lines).toContainEqual(
      expect.objectContaining({
        facts: expect.objectContaining({ err: expect.stringMatching(/64 MiB.*1 MiB are free/) }),
      }),
    );
    expect(await shadows()).toBe(0);
    expect(await rowsOf(t.db)).toEqual(fold(published));
    free = 2 ** 40;
    await until(() => runtime.lag()[0]!.state === 'running');
    await runtime.stop();
    expect(await rowsOf(t.db)).toEqual(secondFold(published));
  });
});

test('rights of a later version are answered while it is driven, refused when not, and built back on request', async () => {
  const mine = { ...eventTally(), rights: true };
  const projections = [mine, tally()];
  await opened(t.db, on, projections);
  const happened = await happen(3);
  const other = await engines(t.db);
  const newer = runtimeOf(t.db, other, [eventTally2(), tally2().p]);
  await newer.start();
  await until(async () => (await versionsOf(mine)).join() === '2' && (await versionsOf(tally())).join() === '2');
  await until(async () => (await total('event_tally')) === 3);
  const unbuilt = createReadModelAvailability({ db: t.db, ...on, log: keptLog(), projections });
  const guarded = unbuilt.guard(t.db);
  const read = async (table: string) => {
    await unbuilt.look();
    return guarded.query(`select 1 from ${table}`).then(
      () => 'answered',
      (error: { status?: number; message: string }) => `${error.status} ${error.message}`,
    );
  };
  try {
    await until(async () => (await read('event_tally')) === 'answered');
    await newer.stop();
    expect(await read('event_tally')).toBe(
      '503 the read model event_tally is of a later version and no process of that version runs',
    );
    expect(await read('tally')).toBe('answered');

    await rebuild({ db: t.db, ...on, projections, name: 'event_tally', older: true });
    expect(await read('event_tally')).toBe('answered');
    expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened));
    expect(await versionsOf(mine)).toEqual([1]);
  } finally {
    unbuilt.close();
    await other.close();
  }
});

test('nobody waits twice for a read model of another version that stands still', async () => {
  await openCheckpoints(t.db, eventTally(), on.events.id, [0], '');
  await happen(1);
  const position = (await on.events.head())!;
  const versions = new Map([['event_tally', 2]]);
  let looks = 0;
  const query: Queryable['query'] = (...given) => {
    looks += 1;
    return t.db.query(...given);
  };
  const parts = { db: { query }, events: on.events, wakeups: on.wakeups };
  const read_models = createReadModels({ ...parts, versions, wait_ms: 400 });
  const asked = async () => {
    const started = performance.now();
    looks = 0;
    expect(await read_models.passed(position, ['event_tally'])).toBe(false);
    return performance.now() - started;
  };
  expect(await asked()).toBeGreaterThanOrEqual(395);
  await asked();
  expect(looks).toBe(1);
  // It moves: somebody drives it.
  await t.db.query(`update checkpoints set position = '0'`);
  expect(await asked()).toBeGreaterThanOrEqual(395);
  read_models.close();
});
