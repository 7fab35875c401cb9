import { v7 as uuid } from 'uuid';
import { TOPICS } from '../../domain/common/records';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Database, Queryable, Row, Statement } from '../../engines/postgres/port';
import { commitBatch } from '../../projections/runtime/drive/batch';
import {
  CheckpointLost,
  EngineMismatch,
  moveCheckpoints,
  openCheckpoints,
  readCheckpoints,
} from '../../projections/runtime/checkpoint/checkpoints';
import type { Item } from '../../projections/runtime/dead-letter/dead-letters';
import { allMessages } from '../support/outbox';
import { PATIENCE_MS } from '../support/patience';
import type { ChannelMessage, EventProjection, RecordProjection } from '../../kernel/projection';
import { createReadModels } from '../../projections/runtime/status/read-models';
import type { TestDatabase } from '../support/database';
import {
  ACCOUNTS,
  engines,
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

const { publish, total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]));

async function happen(streams: number, each: number, type = 'thing:happened'): Promise<[string, string][]> {
  const happened: [string, string][] = [];
  for (let n = 0; n < each; n += 1) {
    await Promise.all(
      Array.from({ length: streams }, async (_, s) => {
        const id = uuid();
        await on.events.append([{ stream: `thing-${s}`, expected: 'any', events: [{ id, type, data: { n } }] }], {});
        happened.push([`thing-${s}`, id]);
      }),
    );
  }
  return happened;
}

/** Every channel's messages are numbered 1, 2, 3 … in the order of ids, one for each applied record. */
async function expectOutbox(entries: readonly (readonly [string, string])[]): Promise<void> {
  const seen = new Map<string, string[]>();
  for (const row of await allMessages(t.db)) {
    const list = seen.get(row.channel) ?? [];
    seen.set(row.channel, list);
    expect(row.seq).toBe(list.length + 1);
    list.push(JSON.parse(row.data).id as string);
  }
  const expected = new Map<string, string[]>();
  for (const [owner, id] of entries) expected.set(`events:${owner}`, [...(expected.get(`events:${owner}`) ?? []), id]);
  expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(expected));
}

test('records and events are applied in order, with their channel messages', async () => {
  const projections = [tally(), eventTally()];
  await opened(t.db, on, projections);
  const runtime = runtimeOf(t.db, on, projections);
  const before = await publish(300);
  await runtime.start();
  const after = await publish(300);
  const happened = await happen(5, 10);
  await until(async () => (await total()) === 600 && (await total('event_tally')) === 50);
  await runtime.stop();
  expect(await rowsOf(t.db)).toEqual(fold([...before, ...after]));
  expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened));
  await expectOutbox([...before, ...after, ...happened]);
});

describe('a failure between any two statements', () => {
  /** Ends the backend under the n-th statement of all, or lets a commit's answer get lost; then works again. */
  class Breaking implements Database {
    left = Infinity;
    constructor(private readonly db: Database) {}
    query<R extends Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]> {
      return this.db.query<R>(text, values, name);
    }
    hold: Database['hold'] = (...given) => this.db.hold(...given);
    async transaction<T>(work: (tx: Queryable) => Promise<T>, last?: (result: T) => Statement | null): Promise<T> {
      const cut = 'select pg_terminate_backend(pg_backend_pid())';
      const result = await this.db.transaction(
        (tx) =>
          work({
            query: async <R extends Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]> => {
              if (this.due()) await tx.query(cut);
              return tx.query<R>(text, values, name);
            },
          }),
        (done) => {
          const statement = last?.(done) ?? null;
          return statement && this.due() ? { text: cut } : statement;
        },
      );
      if (this.due()) throw Object.assign(new Error('the answer to the commit got lost'), { code: 'ECONNRESET' });
      return result;
    }
    private due(): boolean {
      this.left -= 1;
      return this.left === 0;
    }
  }

  test.each([1, 2, 3, 4, 5, 6, 7, 9, 11])('the %i. one: nothing is lost, nothing doubled', async (nth) => {
    const pool = new PostgresDatabase({ url: t.url, name: 'breaking', pipeline: true });
    const breaking = new Breaking(pool);
    const runtime = runtimeOf(breaking, on, [tally(), eventTally()], { batch_records: 20 });
    await opened(t.db, on, [tally(), eventTally()]);
    const published = await publish(60);
    const happened = await happen(3, 3);
    breaking.left = nth;
    await runtime.start();
    await until(async () => (await total()) === 60 && (await total('event_tally')) === 9);
    await runtime.stop();
    await pool.close();
    expect(breaking.left).toBeLessThan(1);
    expect(await rowsOf(t.db)).toEqual(fold(published));
    expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened));
    await expectOutbox([...published, ...happened]);
  });
});

describe('two workers', () => {
  test('staged: the second waits at the fence, finds the checkpoint moved, and leaves no trace', async () => {
    await happen(1, 3);
    const events = await on.events.read('thing-0');
    const batch = {
      items: events.map((event): Item => ({ kind: 'event', event })),
      undecodable: [],
      moves: [{ partition: 0, from: '', to: events.at(-1)!.position }],
    };
    let reached: () => void;
    let release: () => void;
    const inside = new Promise<void>((resolve) => (reached = resolve));
    const gate = new Promise<void>((resolve) => (release = resolve));
    const plain = eventTally();
    const slow: EventProjection = {
      ...plain,
      async apply(events_now, tx, mode) {
        const messages = await plain.apply(events_now, tx, mode);
        reached();
        await gate;
        return messages;
      },
    };
    await openCheckpoints(t.db, plain, on.events.id, [0], '');
    const first = commitBatch(t.db, slow, on.events.id, batch);
    await inside;
    const second = commitBatch(t.db, plain, on.events.id, batch);
    second.catch(() => undefined);
    await until(async () => {
      const [row] = await t.db.query(
        `select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return row!.n === 1;
    });
    release!();
    await first;
    await expect(second).rejects.toThrow(CheckpointLost);
    // The same page once more, as after a rebalance: refused as well.
    await expect(commitBatch(t.db, plain, on.events.id, batch)).rejects.toThrow(CheckpointLost);
    expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(events.map(({ stream, id }) => [stream, id])));
    await expectOutbox(events.map(({ stream, id }) => [stream, id] as const));
  });

  test('two runtimes at once: every effect once, and the second takes over when the first stops', async () => {
    const other = await engines(t.db);
    const projections = [tally(), eventTally()];
    const [a, b] = [runtimeOf(t.db, on, projections), runtimeOf(t.db, other, projections)];
    await Promise.all([a.start(), b.start()]);
    const published = await publish(500);
    const happened = await happen(4, 25);
    await until(async () => (await total()) === 500 && (await total('event_tally')) === 100);
    await a.stop();
    published.push(...(await publish(100)));
    happened.push(...(await happen(4, 5)));
    await until(async () => (await total()) === 600 && (await total('event_tally')) === 120);
    await b.stop();
    await other.close();
    expect(await rowsOf(t.db)).toEqual(fold(published));
    expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened));
    await expectOutbox([...published, ...happened]);
  });
});

describe('checkpoints', () => {
  test('one of another engine refuses the start, and says which', async () => {
    await openCheckpoints(t.db, eventTally(), 'kurrentdb:elsewhere', [0], '');
    const runtime = runtimeOf(t.db, on, [eventTally()]);
    await expect(runtime.start()).rejects.toThrow(EngineMismatch);
    await expect(runtimeOf(t.db, on, [eventTally()]).start()).rejects.toThrow(
      /event_tally.*kurrentdb:elsewhere.*lumio restore into a new database$/,
    );
    // The ledger lies beside the checkpoints.
    await expect(runtimeOf(t.db, on, [eventTally()]).start()).rejects.not.toThrow(/delete/);
  });

  test('one of an earlier version is built anew by itself and holds up nothing else', async () => {
    await openCheckpoints(t.db, tally(), on.broker.id, [0, 1, 2, 3], '0');
    const runtime = runtimeOf(t.db, on, [tally('tally', 2), eventTally()]);
    await runtime.start();
    await publish(10);
    const happened = await happen(1, 3);
    await until(async () => (await total('event_tally')) === happened.length);
    await until(async () => (await total()) === 10);
    await runtime.stop();
    const versions = [...(await readCheckpoints(t.db, tally())).values()].map(({ version }) => version);
    expect(versions).toEqual([2, 2, 2, 2]);
  });

  test('passes events of other types', async () => {
    const runtime = runtimeOf(t.db, on, [eventTally()]);
    await runtime.start();
    await happen(1, 3, 'other:happened');
    const head = (await on.events.head())!;
    expect(await runtime.read_models.passed(head, ['event_tally'])).toBe(true);
    await until(async () => (await readCheckpoints(t.db, eventTally())).get(0)?.position === head);
    await runtime.stop();
  });
});

describe('read your own writes', () => {
  test('passed and applied wait in this process and in another', async () => {
    const runtime = runtimeOf(t.db, on, [tally(), eventTally()]);
    await runtime.start();
    const elsewhere = createReadModels({ db: t.db, events: on.events, wakeups: on.wakeups, wait_ms: PATIENCE_MS });
    for (const [n, read_models] of [runtime.read_models, elsewhere, runtime.read_models, elsewhere].entries()) {
      const id = uuid();
      const event = { id, type: 'thing:happened', data: {} };
      const { position } = await on.events.append([{ stream: 'mine', expected: 'any', events: [event] }], {});
      expect(await read_models.passed(position, ['event_tally'])).toBe(true);
      expect(await total('event_tally')).toBe(n + 1);
      const ends = await on.records.append(TOPICS.platform_events, [record(ACCOUNTS[n]!, 'mine')]);
      expect(await read_models.applied(TOPICS.platform_events, ends, ['tally'])).toBe(true);
      expect(await total()).toBe(n + 1);
    }
    await runtime.stop();
    elsewhere.close();
  });

  test('applied waits for the records of its own publish alone, not for what others have in hand', async () => {
    const busy = await on.records.append(TOPICS.platform_events, [record(ACCOUNTS[0]!, 'held')]);
    const ends = await on.records.append(TOPICS.platform_events, [record(ACCOUNTS[1]!, 'mine')]);
    const [[partition, end]] = [...ends] as [[number, number]];
    expect([...busy.keys()]).not.toEqual([partition]);
    const read_models = createReadModels({ db: t.db, events: on.events, wakeups: on.wakeups, wait_ms: 300 });
    const applied = () => read_models.applied(TOPICS.platform_events, ends, ['tally']);
    await openCheckpoints(t.db, tally(), on.broker.id, [0, 1, 2, 3], '0');
    expect(await applied()).toBe(false);
    // The other account's partition stands still.
    const move = { partition, from: '0', to: String(end) };
    await t.db.transaction((tx) => moveCheckpoints(tx, tally(), on.broker.id, [move]));
    expect(await applied()).toBe(true);
    read_models.close();
  });

  test('answers false at its bound when nobody drives the projection', async () => {
    const { position } = await on.events.append(
      [{ stream: 'mine', expected: 'none', events: [{ id: uuid(), type: 'thing:happened', data: {} }] }],
      {},
    );
    const { db } = t;
    const read_models = createReadModels({
      db,
      events: on.events,
      wakeups: on.wakeups,
      wait_ms: 150,
    });
    const started = performance.now();
    expect(await read_models.passed(position, ['event_tally'])).toBe(false);
    expect(performance.now() - started).toBeGreaterThanOrEqual(145);
    read_models.close();
  });
});

test('a consumer that hangs in its transaction is cut off and started again', async () => {
  const plain = tally();
  let hung = 0;
  let release: (messages: ChannelMessage[]) => void = () => undefined;
  const hanging_call = new Promise<ChannelMessage[]>((resolve) => (release = resolve));
  const hanging: RecordProjection = {
    ...plain,
    apply: (batch, tx, mode) => (hung++ === 0 ? hanging_call : plain.apply(batch, tx, mode)),
  };
  const runtime = runtimeOf(t.db, on, [hanging], { stall_ms: 1_000 });
  const published = await publish(20);
  await runtime.start();
  await until(async () => (await total()) === 20);
  expect(await rowsOf(t.db)).toEqual(fold(published));
  release([]); // too late: its connection was cut off long ago
  await runtime.stop();
});

test('lag is observed, and is none when all is applied', async () => {
  const runtime = runtimeOf(t.db, on, [tally()], { observe_ms: 20 });
  const lock = await t.db.pool.connect();
  await lock.query('begin; lock table tally in exclusive mode');
  await publish(50);
  await runtime.start();
  await until(() => runtime.lag()[0]!.behind === 50 && runtime.lag()[0]!.seconds > 0);
  await lock.query('rollback');
  lock.release();
  await until(() => runtime.lag()[0]!.behind === 0 && runtime.lag()[0]!.seconds === 0);
  await runtime.stop();
});
