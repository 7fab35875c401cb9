import { Command } from 'commander';
import { v7 as uuid } from 'uuid';
import { register } from '../../cli/dead-letters';
import { TOPICS } from '../../domain/common/records';
import type { BrokerRecord } from '../../engines/broker/port';
import {
  listDeadLetters,
  park,
  type Parked,
  sparingCounts,
  trimRetriedLetters,
} from '../../projections/runtime/dead-letter/dead-letters';
import { projectionsCheck } from '../../api/health/health-checks';
import type { EventProjection, RecordProjection } from '../../kernel/projection';
import { dropDeadLetter, NotSettled, retryDeadLetter } from '../../projections/runtime/dead-letter/retry-letters';
import type { TestDatabase } from '../support/database';
import { keptLog, silentLog } from '../support/log';
import {
  ACCOUNTS,
  type Engines,
  eventTally,
  fold,
  opened,
  record,
  rowsOf,
  runtimeOf,
  tally,
  until,
} from '../support/projections';
import { talliedDatabase } from '../support/tallied';

let t: TestDatabase;
let on: Engines;

const { total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]), 10);

async function happen(stream: string, raw: string): Promise<string> {
  const id = uuid();
  await on.events.append([{ stream, expected: 'any', events: [{ id, type: 'thing:happened', data: { raw } }] }], {
    account_id: 'acc',
  });
  return id;
}

test('a letter goes 30 days after its retry; one that waits or was dropped stays', async () => {
  await t.db.query(
    `insert into dead_letters (projection, source, partition, position, reason, error, status, settled_at)
     select 'p', 's', 0, n, 'poison', 'e', status, now() - make_interval(days => days)
     from (values (1, 'retried', 31), (2, 'retried', 29), (3, 'dropped', 400), (4, 'parked', null)) v (n, status, days)`,
  );
  expect(await trimRetriedLetters(t.db)).toBe(1);
  expect(await t.db.query('select position from dead_letters order by position')).toEqual(
    ['2', '3', '4'].map((position) => ({ position })),
  );
  expect(await trimRetriedLetters(t.db)).toBe(0);
});

test('items of one batch are parked in few statements, bounded by their bytes, and in their order', async () => {
  const item = (offset: number, value: Buffer): Parked => ({
    item: {
      kind: 'undecodable',
      stored: {
        topic: TOPICS.platform_events,
        partition: 3,
        offset,
        key: `k${offset}`,
        value,
        headers: { 'a"b': 'c' },
        appended_at: '2026-01-02T03:04:05.678Z',
      } as unknown as BrokerRecord,
    },
    reason: 'undecodable',
    error: `e\\"${offset}`,
  });
  const small = Array.from({ length: 300 }, (_, n) => item(n, Buffer.from([0, n % 256, 92, 34])));
  const large = Array.from({ length: 4 }, (_, n) => item(1000 + n, Buffer.alloc(600_000, n)));
  let statements = 0;
  const query: TestDatabase['db']['query'] = (...given) => {
    statements += 1;
    return t.db.query(...given);
  };
  await park({ query }, tally(), [...small, ...large], { rebuilding: false });
  // The small ones with two of the large ones, then two, and none that is left over.
  expect(statements).toBe(2);
  const letters = await listDeadLetters(t.db, { limit: 1000 });
  expect(letters.map(({ position, record: bytes, record_key, error }) => [position, bytes, record_key, error])).toEqual(
    [...small, ...large].map(({ item: one, error }) => {
      const { offset, value, key } = 'stored' in one ? one.stored : ({} as BrokerRecord);
      return [String(offset), value, key, error];
    }),
  );
  expect(letters[0]).toMatchObject({ partition: 3, attempts: 1, silent: false, event: null, stream: null });
  await park(t.db, tally(), small.slice(0, 2), { rebuilding: false });
  expect((await listDeadLetters(t.db, { limit: 3 })).map(({ attempts }) => attempts)).toEqual([2, 2, 1]);
});

test('letters are counted again only after a multiple of the time that the last count took', async () => {
  let counted = 0;
  const count = sparingCounts({
    async query() {
      counted += 1;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return [{ projection: 'p', parked: counted }] as never;
    },
  });
  expect(await count()).toEqual(new Map([['p', 1]]));
  expect(await count()).toEqual(new Map([['p', 1]]));
  expect(counted).toBe(1);
});

/** The same projections after the bug is mended: poison is like any other. */
const mendedRecords = (): RecordProjection => {
  const plain = tally();
  return {
    ...plain,
    apply: (batch, tx, mode) =>
      plain.apply(
        batch.map((r) => ({ ...r, raw: '"fine"' })),
        tx,
        mode,
      ),
  };
};
const mendedEvents = (): EventProjection => {
  const plain = eventTally();
  return {
    ...plain,
    apply: (batch, tx, mode) =>
      plain.apply(
        batch.map((e) => ({ ...e, data: {} })),
        tx,
        mode,
      ),
  };
};

test.each(['poison:sql', 'poison:js'])(
  'one %s in a batch of 1000 is parked; the other 999 keep their effects and order',
  async (poison) => {
    await opened(t.db, on, [tally()]);
    const records = Array.from({ length: 1000 }, (_, n) => record(ACCOUNTS[n % 8]!, n === 617 ? poison : n));
    await on.records.append(TOPICS.platform_events, records);
    const runtime = runtimeOf(t.db, on, [tally()]);
    await runtime.start();
    await until(async () => (await total()) === 999);
    await runtime.stop();
    expect(await rowsOf(t.db)).toEqual(fold(records.filter((_, n) => n !== 617).map((r) => [r.account_id, r.id])));
    const [letter, ...others] = await listDeadLetters(t.db);
    expect(others).toEqual([]);
    expect(letter).toMatchObject({ projection: 'tally', reason: 'poison', type: 'kick:follower', attempts: 1 });
    expect(letter!.record!.length).toBeGreaterThan(10);
    expect((await t.db.query('select count(*) as n from outbox'))[0]!.n).toBe(999);

    // Mended and retried: exactly once, with its message.
    const deps = { db: t.db, records: on.records, readStored: on.readStored, projections: [mendedRecords()] };
    await expect(retryDeadLetter({ ...deps, projections: [tally()] }, letter!.id)).resolves.toMatchObject({
      retried: 0,
      waiting: 1,
    });
    expect((await listDeadLetters(t.db))[0]).toMatchObject({ attempts: 2 });
    const both = await Promise.allSettled([retryDeadLetter(deps, letter!.id), retryDeadLetter(deps, letter!.id)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(retryDeadLetter(deps, letter!.id)).rejects.toThrow(NotSettled);
    expect(await total()).toBe(1000);
    expect((await t.db.query('select count(*) as n from outbox'))[0]!.n).toBe(1000);
  },
);

test('a retried record is noted in its transaction, as any record that counts', async () => {
  await opened(t.db, on, [tally()]);
  const poison = record(ACCOUNTS[0]!, 'poison:js');
  await on.records.append(TOPICS.platform_events, [poison]);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await listDeadLetters(t.db)).length === 1);
  await runtime.stop();
  const asked: string[] = [];
  const deps = {
    ...{ db: t.db, records: on.records, readStored: on.readStored },
    whenCounted: async (_tx: unknown, name: string, records: readonly { id: string }[]) => {
      asked.push(...records.map(({ id }) => `${name}/${id}`));
    },
  };
  const [letter] = await listDeadLetters(t.db);
  await retryDeadLetter({ ...deps, projections: [tally()] }, letter!.id);
  expect(asked).toEqual([]);
  await retryDeadLetter({ ...deps, projections: [mendedRecords()] }, letter!.id);
  expect(asked).toEqual([`tally/${poison.id}`]);
});

test('an event whose letter was moved to its place in another store stays that letter when it fails again', async () => {
  await happen('s', 'poison:js');
  const runtime = runtimeOf(t.db, on, [eventTally()]);
  await runtime.start();
  await until(async () => (await listDeadLetters(t.db)).length === 1);
  await runtime.stop();
  await t.db.query(`update dead_letters set position = '17/17'`);
  const { id } = (await listDeadLetters(t.db))[0]!;
  const deps = { db: t.db, records: on.records, readStored: on.readStored };
  await expect(retryDeadLetter({ ...deps, projections: [eventTally()] }, id)).resolves.toMatchObject({ waiting: 1 });
  expect(await listDeadLetters(t.db)).toMatchObject([{ id, position: '17/17', attempts: 2, status: 'parked' }]);
  await retryDeadLetter({ ...deps, projections: [mendedEvents()] }, id);
  expect(await total('event_tally')).toBe(1);
});

test('a record that cannot be decoded is parked with its bytes', async () => {
  const good = record(ACCOUNTS[0]!, 1);
  await on.broker.publish(TOPICS.platform_events, [
    { key: ACCOUNTS[0]!, value: Buffer.from('no avro'), headers: { a: 'b' } },
  ]);
  await on.records.append(TOPICS.platform_events, [good]);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 1);
  await runtime.stop();
  const [letter] = await listDeadLetters(t.db);
  expect(letter).toMatchObject({ reason: 'undecodable', record: Buffer.from('no avro'), record_key: ACCOUNTS[0]! });
});

test('a stream waits behind its parked event until the retry, other streams go on', async () => {
  const runtime = runtimeOf(t.db, on, [eventTally()]);
  await runtime.start();
  const a = [await happen('a', 'fine'), await happen('a', 'poison:sql'), await happen('a', 'fine')];
  const b = [await happen('b', 'fine'), await happen('b', 'fine')];
  await until(async () => (await total('event_tally')) === 3 && (await listDeadLetters(t.db)).length === 2);
  a.push(await happen('a', 'fine'));
  await until(async () => (await listDeadLetters(t.db)).length === 3);
  const letters = await listDeadLetters(t.db);
  expect(letters.map(({ reason, stream }) => [reason, stream])).toEqual([
    ['poison', 'a'],
    ['blocked', 'a'],
    ['blocked', 'a'],
  ]);
  const deps = {
    db: t.db,
    records: on.records,
    readStored: on.readStored,
    wakeups: on.wakeups,
    projections: [eventTally()],
  };
  // Not mended yet: it fails again, and all still wait.
  expect(await retryDeadLetter(deps, letters[2]!.id)).toMatchObject({
    retried: 0,
    waiting: 3,
    error: expect.stringContaining('22P02'),
  });
  expect(await retryDeadLetter({ ...deps, projections: [mendedEvents()] }, letters[0]!.id)).toEqual({
    retried: 3,
    dropped: 0,
    waiting: 0,
    error: null,
  });
  a.push(await happen('a', 'fine'));
  await until(async () => (await total('event_tally')) === 7);
  await runtime.stop();
  expect(await rowsOf(t.db, 'event_tally')).toEqual(
    fold([...a.map((id) => ['a', id] as const), ...b.map((id) => ['b', id] as const)]),
  );
});

test('a long stream is applied by pages, up to its next failure, and from there when it is retried again', async () => {
  const runtime = runtimeOf(t.db, on, [eventTally()]);
  await runtime.start();
  const raws = ['poison:sql', 'fine', 'fine', 'poison:js', 'fine', 'fine'];
  const a: string[] = [];
  for (const raw of raws) a.push(await happen('a', raw));
  await until(async () => (await listDeadLetters(t.db)).length === raws.length);
  await runtime.stop();
  let longest = 0;
  const mended = (what: string[]): EventProjection => {
    const plain = eventTally();
    return {
      ...plain,
      apply(batch, tx, mode) {
        longest = Math.max(longest, batch.length);
        const read = batch.map((e) => (what.includes(e.data.raw as string) ? { ...e, data: {} } : e));
        return plain.apply(read, tx, mode);
      },
    };
  };
  const deps = { db: t.db, records: on.records, readStored: on.readStored, page: 2 };
  const retry = async (what: string[]) =>
    retryDeadLetter({ ...deps, projections: [mended(what)] }, (await listDeadLetters(t.db))[0]!.id);
  expect(await retry(['poison:sql'])).toEqual({ retried: 3, dropped: 0, waiting: 3, error: expect.any(String) });
  expect(await total('event_tally')).toBe(3);
  expect(await retry(['poison:js'])).toEqual({ retried: 3, dropped: 0, waiting: 0, error: null });
  expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(a.map((id) => ['a', id] as const)));
  expect(longest).toBe(2);
});

test('dropping the parked event frees its stream, up to the next failure', async () => {
  const runtime = runtimeOf(t.db, on, [eventTally()]);
  await runtime.start();
  await happen('a', 'poison:js');
  const second = await happen('a', 'fine');
  await happen('a', 'poison:js');
  await happen('a', 'fine');
  await until(async () => (await listDeadLetters(t.db)).length === 4);
  await runtime.stop();
  const [first] = await listDeadLetters(t.db);
  const deps = { db: t.db, records: on.records, readStored: on.readStored, projections: [eventTally()] };
  expect(await dropDeadLetter(deps, first!.id)).toMatchObject({
    dropped: 1,
    retried: 1,
    waiting: 2,
    error: expect.any(String),
  });
  expect(await rowsOf(t.db, 'event_tally')).toEqual(fold([['a', second]]));
  expect((await listDeadLetters(t.db)).map(({ reason }) => reason)).toEqual(['poison', 'blocked']);
});

test('the command lists, shows, retries and drops, with exit codes', async () => {
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await on.records.append(TOPICS.platform_events, [
    record(ACCOUNTS[0]!, 'poison:js'),
    record(ACCOUNTS[0]!, 'poison:js'),
  ]);
  await until(async () => (await listDeadLetters(t.db)).length === 2);
  await runtime.stop();
  const printed: string[] = [];
  let projections = [tally()];
  const out = jest.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
  const err = jest.spyOn(process.stderr, 'write').mockImplementation(() => true);
  const run = async (...args: string[]): Promise<number> => {
    const program = new Command();
    register(program, async () => ({
      ...on,
      db: t.db,
      build_db: t.db,
      projections,
      reactions: {
        reactors: [],
        jobs: {
          enqueue: async () => undefined,
          enqueueNamed: async () => undefined,
          cancel: async () => 0,
          wake: () => undefined,
        },
      },
      log: silentLog,
      close: async () => undefined,
    }));
    await program.parseAsync(['node', 'lumio', 'dead-letters', ...args]);
    const code = Number(process.exitCode ?? 0);
    process.exitCode = 0;
    return code;
  };
  try {
    const [first, second] = (await listDeadLetters(t.db)).map(({ id }) => String(id));
    expect(await run('list')).toBe(0);
    const listed = printed.splice(0).join('').trim().split('\n');
    expect(listed.map((line) => line.split('\t').slice(0, 2))).toEqual([
      ['id', 'projection'],
      [first, 'tally'],
      [second, 'tally'],
    ]);
    expect(await run('show', first!)).toBe(0);
    expect(JSON.parse(printed.splice(0).join(''))).toMatchObject({ projection: 'tally', reason: 'poison' });
    expect(await run('retry', first!)).toBe(1);
    expect(printed.splice(0).join('')).toBe(
      `dead letter ${first} (tally, kick:follower): applied 0, dropped 0, still waiting 1\n`,
    );
    expect(await run('drop', second!)).toBe(0);
    expect(await run('drop', second!)).toBe(1);
    expect(await run('show', '999')).toBe(1);
    // All at once: what fails again keeps waiting, and says why.
    await on.records.append(TOPICS.platform_events, [
      record(ACCOUNTS[1]!, 'poison:js'),
      record(ACCOUNTS[2]!, 'poison:js'),
    ]);
    const again = runtimeOf(t.db, on, [tally()]);
    await again.start();
    await until(async () => (await listDeadLetters(t.db)).length === 3);
    await again.stop();
    expect(await run('retry', '--all')).toBe(1);
    expect(await run('retry', '--all', '--projection', 'nobody')).toBe(0);
    projections = [mendedRecords()];
    printed.splice(0);
    expect(await run('retry', '--all')).toBe(0);
    const said = printed.join('').split('\n');
    expect(said.slice(0, 3)).toEqual(
      Array(3).fill(expect.stringMatching(/^dead letter \d+ \(tally, \S+\): applied 1$/)),
    );
    expect(said.slice(3)).toEqual(['all: applied 3, dropped 0, still waiting 0', '']);
    expect(await total()).toBe(3);
  } finally {
    out.mockRestore();
    err.mockRestore();
  }
});

describe('a failure that nobody declared', () => {
  test.each(['bug:sql', 'bug:js'])(
    'as of %s stops the projection and says so: nothing is parked or skipped, others go on, and once mended it does',
    async (bug) => {
      const records = Array.from({ length: 60 }, (_, n) => record(ACCOUNTS[n % 8]!, n === 31 ? bug : n));
      await opened(t.db, on, [tally(), eventTally()]);
      const log = keptLog();
      const runtime = runtimeOf(t.db, on, [tally(), eventTally()], { log });
      await runtime.start();
      await on.records.append(TOPICS.platform_events, records);
      const stateOf = (name: string) => runtime.lag().find(({ projection }) => projection === name)!.state;
      // Tried again and again, and stopped all the while.
      await until(() => log.lines.filter(({ message }) => message === 'projection is stopped').length >= 3);
      expect(stateOf('tally')).toBe('stopped');
      await expect(projectionsCheck(runtime).check()).resolves.toMatchObject({ status: 'degraded' });
      await happen('s', 'fine');
      await until(async () => (await total('event_tally')) === 1);
      expect(stateOf('event_tally')).toBe('running');
      await runtime.stop();
      expect(await listDeadLetters(t.db)).toEqual([]);

      const mended = runtimeOf(t.db, on, [mendedRecords()]);
      await mended.start();
      await until(async () => (await total()) === 60);
      expect(mended.lag()[0]!.state).toBe('running');
      await mended.stop();
      expect(await rowsOf(t.db)).toEqual(fold(records.map((r) => [r.account_id, r.id])));
      expect((await t.db.query('select count(*) as n from outbox'))[0]!.n).toBe(61);
    },
  );

  test('beside poison in one batch stops it all the same: bisecting finds data errors alone', async () => {
    await on.records.append(TOPICS.platform_events, [
      record(ACCOUNTS[0]!, 'poison:js'),
      record(ACCOUNTS[0]!, 'bug:js'),
      record(ACCOUNTS[0]!, 1),
    ]);
    const runtime = runtimeOf(t.db, on, [tally()]);
    await runtime.start();
    await until(() => runtime.lag()[0]!.state === 'stopped');
    await runtime.stop();
    expect(await listDeadLetters(t.db)).toEqual([]);
    expect(await total()).toBe(0);
  });

  test('keeps a letter waiting that is retried into it', async () => {
    await on.records.append(TOPICS.platform_events, [record(ACCOUNTS[0]!, 'poison:js')]);
    const runtime = runtimeOf(t.db, on, [tally()]);
    await runtime.start();
    const letter = await until(async () => (await listDeadLetters(t.db))[0]);
    await runtime.stop();
    const broken: RecordProjection = { ...tally(), apply: () => Promise.reject(new TypeError('no such member')) };
    const deps = { db: t.db, records: on.records, readStored: on.readStored, projections: [broken] };
    await expect(retryDeadLetter(deps, letter.id)).rejects.toThrow('no such member');
    expect(await listDeadLetters(t.db)).toMatchObject([{ status: 'parked', attempts: 1 }]);
  });
});
