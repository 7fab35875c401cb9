import fc from 'fast-check';
import pg from 'pg';
import { fedEventStore } from '../../engines/event-store/feed/feed';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import type { Wakeups } from '../../engines/wakeups/port';
import { eventStoreContract, happened, until, type StoreEngine } from '../contracts/event-store';
import { testDatabase, type TestDatabase } from '../support/database';
import { silenceableLink } from '../support/link';
import { uuid } from '../support/identity';
import { keptLog } from '../support/log';
import { PATIENCE_MS } from '../support/patience';

interface PostgresEngine extends StoreEngine {
  t: TestDatabase;
}

async function makeEngine(): Promise<PostgresEngine> {
  const t = await testDatabase(2);
  const nodes: { store: EventStore; wakeups: Wakeups; pool: pg.Pool }[] = [];
  return {
    t,
    async open() {
      const pool = new pg.Pool({ connectionString: t.url, max: 4 });
      pool.on('error', () => undefined);
      const wakeups = createPostgresWakeups({ url: t.url });
      const store = await createPostgresEventStore({ pool, wakeups, poll_ms: 250 });
      nodes.push({ store, wakeups, pool });
      return store;
    },
    async breakLinks() {
      await t.db.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = current_user and pid <> pg_backend_pid()',
      );
    },
    async close() {
      for (const { store, wakeups, pool } of nodes) {
        await store.close();
        await wakeups.close();
        await pool.end();
      }
      await t.drop();
    },
  };
}

eventStoreContract('postgres', makeEngine);
eventStoreContract('postgres, one feed a process', async () => {
  const engine = await makeEngine();
  return { ...engine, open: async () => fedEventStore(await engine.open()) };
});

describe('event store on PostgreSQL', () => {
  let engine: PostgresEngine;
  let store: EventStore;
  beforeEach(async () => {
    engine = await makeEngine();
    store = await engine.open();
  });
  afterEach(() => engine.close());

  const metadata = { actor_kind: 'system' };
  const append = (stream: string, n = 0) =>
    store.append([{ stream, expected: 'any', events: [happened('x:y', { n })] }], metadata);

  /** A transaction on a connection of its own that can be held open. */
  async function begin() {
    const client = new pg.Client({ connectionString: engine.t.url });
    await client.connect();
    await client.query('begin');
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return {
      pid: rows[0]!.pid,
      append(stream: string) {
        const { id, type } = happened('x:y');
        const text =
          "select * from append_domain_events('{}', '{1}', '{1}', '{1}', $1, '{-1}', '{1}', $2, '{1}', '{1}', $2, $3, '{}')";
        return client.query(text, [stream, id, type]);
      },
      async commit() {
        await client.query('commit');
        await client.end();
      },
    };
  }

  test('positions become visible in their order: a second group waits for the first commit, so a tail passes nothing by', async () => {
    const slow = await begin();
    const fast = await begin();
    await slow.append('slow');
    const later = fast.append('fast').then(() => fast.commit());
    const waits = 'select 1 from pg_locks where pid = $1 and not granted';
    await until(async () => (await engine.t.db.query(waits, [fast.pid])).length === 1, 'the second group to wait');
    const seen: StoredEvent[] = [];
    const tail = store.subscribe({ after: null }, async ({ events }) => void seen.push(...events));
    const early: StoredEvent[] = [];
    for await (const { events } of store.readAll(null)) early.push(...events);
    expect(early).toEqual([]);
    await slow.commit();
    await later;
    await until(() => seen.length === 2, 'both');
    expect(seen.map(({ stream }) => stream)).toEqual(['slow', 'fast']);
    await tail.stop();
  });

  test('an event that comes alone is judged as it is in a group', async () => {
    const ids = [uuid(1), uuid(2), uuid(3), uuid(4)];
    const grouped =
      "select status, revision::int, at_position::int from append_domain_events('{}', '{1}', '{1}', '{1}', $1, array[$2::bigint], '{1}', $3, '{1}', '{1}', $3, 'x:y', '{}')";
    const alone =
      "select status, revision::int, at_position::int from append_domain_event($1, $2, $3::uuid, 'x:y', '{}', '{}')";
    const stored = 'select position, stream, revision, id from domain_events order by position';
    const step = fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: -2, max: 2 }), fc.constantFrom(...ids));
    const statuses = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        await engine.t.db.transaction(async (tx) => {
          await tx.query('delete from domain_events');
          for (const values of steps) {
            await tx.query('savepoint before_one');
            const [expected] = await tx.query<{ status: number }>(grouped, values);
            const rows = await tx.query(stored);
            await tx.query('rollback to before_one');
            expect(await tx.query(alone, values)).toEqual([expected]);
            expect(await tx.query(stored)).toEqual(rows);
            statuses.add(expected!.status);
          }
        });
      }),
      { numRuns: 60 },
    );
    expect([...statuses].sort()).toEqual([0, 1, 2, 3]);
  });

  test('twelve writers on three nodes: a tail sees every event, each in the order of the log', async () => {
    const nodes = [store, await engine.open(), await engine.open()];
    const tail_node = await engine.open();
    const seen: StoredEvent[] = [];
    const tail = tail_node.subscribe({ after: null, batch_size: 50 }, async ({ events }) => void seen.push(...events));
    const end = Date.now() + 2500;
    await Promise.all(
      Array.from({ length: 12 }, async (_, writer) => {
        for (let n = 0; n < 30 || Date.now() < end; n += 1) {
          const stream = `hot-${(writer + n) % 4}`;
          await nodes[writer % 3]!.append(
            [{ stream, expected: 'any', events: [happened('x:y', { writer, n })] }],
            metadata,
          );
        }
      }),
    );
    const rows = await engine.t.db.query(
      'select id, stream, revision, position::text from domain_events order by domain_events.position',
    );
    await until(() => seen.length >= rows.length, 'the tail');
    await tail.stop();
    expect(rows.length).toBeGreaterThan(300);
    expect(seen.map(({ id, stream, revision, position }) => ({ id, stream, revision, position }))).toEqual(rows);
    const next = new Map<string, number>();
    for (const { stream, revision } of seen) {
      expect(revision).toBe(next.get(stream) ?? 0);
      next.set(stream, revision + 1);
    }
    expect(rows.at(-1)!['position']).toBe(String(rows.length));
  });

  test('an old writing transaction, here or in another database, delays neither appends nor the tail', async () => {
    const here = new pg.Client({ connectionString: engine.t.url });
    const other = await testDatabase(1);
    const elsewhere = new pg.Client({ connectionString: other.url });
    for (const client of [here, elsewhere]) {
      await client.connect();
      await client.query("begin; insert into installation values ('idle', 'yes')");
    }
    const seen: StoredEvent[] = [];
    const tail = store.subscribe({ after: null }, async ({ events }) => void seen.push(...events));
    await append('s');
    await until(() => seen.length === 1, 'the event');
    await tail.stop();
    for (const client of [here, elsewhere]) await client.end();
    await other.drop();
  });

  test('appends that arrive together are one transaction', async () => {
    await Promise.all(Array.from({ length: 64 }, (_, n) => append(`s-${n}`)));
    const [row] = await engine.t.db.query(
      'select count(*) as events, count(distinct xmin::text) as transactions from domain_events',
    );
    expect(row).toEqual({ events: 64, transactions: 1 });
  });

  test('a tail is woken: an event of another node arrives long before the poll', async () => {
    const pool = new pg.Pool({ connectionString: engine.t.url, max: 2 });
    const wakeups = createPostgresWakeups({ url: engine.t.url });
    const node = await createPostgresEventStore({ pool, wakeups, poll_ms: 10 * PATIENCE_MS });
    const seen: StoredEvent[] = [];
    const tail = node.subscribe({ after: null }, async ({ events }) => void seen.push(...events));
    await append('first');
    await until(() => seen.length === 1, 'the first event');
    await append('second');
    await until(() => seen.length === 2, 'the second event');
    await tail.stop();
    await wakeups.close();
    await pool.end();
  });

  test('without wake-ups the fallback poll finds it, and its failures are logged, not thrown', async () => {
    const pool = new pg.Pool({ connectionString: engine.t.url, max: 2 });
    pool.on('error', () => undefined);
    const log = keptLog();
    const node = await createPostgresEventStore({ pool, wakeups: createLocalWakeups(), poll_ms: 50, log });
    const seen: StoredEvent[] = [];
    const tail = node.subscribe({ after: null }, async ({ events }) => void seen.push(...events));
    await engine.t.db.query('alter table domain_events rename to hidden');
    await until(() => log.lines.some(({ level }) => level === 'warn'), 'a warning');
    await engine.t.db.query('alter table hidden rename to domain_events');
    await append('s');
    await until(() => seen.length === 1, 'the event');
    await tail.stop();
    await pool.end();
  });

  test('links that go silent without closing: appends are sent again, once in effect, and the tail goes on', async () => {
    const link = await silenceableLink(engine.t.url);
    const pool = new pg.Pool({ connectionString: link.url, max: 3 });
    pool.on('error', () => undefined);
    const node = await createPostgresEventStore({
      pool,
      wakeups: createLocalWakeups(),
      poll_ms: 50,
      append_timeout_ms: 300,
    });
    const seen: StoredEvent[] = [];
    const tail = store.subscribe({ after: null }, async ({ events }) => void seen.push(...events));
    const write = (n: number) =>
      node.append([{ stream: 's', expected: n === 0 ? 'none' : n - 1, events: [happened('x:y', { n })] }], metadata);
    await write(0);
    const under_way = write(1);
    link.silence();
    expect((await under_way).revisions).toEqual({ s: 1 });
    link.silence();
    expect((await write(2)).revisions).toEqual({ s: 2 });
    await until(() => seen.length === 3, 'the events');
    await tail.stop();
    await node.close();
    await pool.end();
    link.close();
  });

  test('data keeps its text: member order and escapes', async () => {
    await store.append(
      [{ stream: 's', expected: 'none', events: [happened('x:y', { b: 1, a: { z: '\\u0000', y: 'ü' } })] }],
      metadata,
    );
    const [row] = await engine.t.db.query('select data from domain_events');
    expect(row!['data']).toBe('{"b":1,"a":{"z":"\\\\u0000","y":"ü"}}');
  });

  test('a filtered reading steps over a hole that is longer than its window, and its pages grow', async () => {
    const many = (type: string, count: number) =>
      store.append(
        [{ stream: `s-${type}`, expected: 'any', events: Array.from({ length: count }, () => happened(type)) }],
        metadata,
      );
    for (let n = 0; n < 6; n += 1) await many('x:y', 500);
    await many('other:z', 3);
    // As a restore leaves it.
    await engine.t.db.query('update domain_events set position = position + 50000 where position > 2000');
    await many('x:y', 1);
    const pages: number[] = [];
    let last = '';
    for await (const { events, position } of store.readAll(null, { types: ['x:y'] })) {
      pages.push(events.length);
      last = position;
    }
    expect(pages.reduce((sum, length) => sum + length, 0)).toBe(3001);
    expect(Math.max(...pages)).toBeGreaterThan(500);
    expect(last).toBe(await store.head());
    const seen: StoredEvent[] = [];
    const tail = store.subscribe({ after: null, types: ['other:z'] }, async ({ events }) => void seen.push(...events));
    await until(() => seen.length === 3, 'the tail to step over the hole');
    await tail.stop();
  });
});
