import { v7 as uuid } from 'uuid';
import { delegated } from '../../engines/event-store/decorators/delegated';
import { fedEventStore } from '../../engines/event-store/feed/feed';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { testDatabase, type TestDatabase } from '../support/database';
import { until } from '../support/projections';

/** The store with its reads counted. */
function counted(store: EventStore) {
  const asked = { tails: 0, pages: 0, apart: 0 };
  const counting: EventStore = {
    ...delegated(store),
    async *readAll(after, filter) {
      asked.apart += 1;
      yield* store.readAll(after, filter);
    },
    subscribe(options, onBatch) {
      asked.tails += 1;
      return store.subscribe(options, async (batch) => {
        asked.pages += 1;
        await onBatch(batch);
      });
    },
  };
  return { counting, asked };
}

describe('one feed of domain events a process', () => {
  let t: TestDatabase;
  let store: EventStore;
  let end: () => Promise<void>;
  beforeEach(async () => {
    t = await testDatabase(2);
    const wakeups = createLocalWakeups();
    store = await createPostgresEventStore({ pool: t.db.pool, wakeups, poll_ms: 200 });
    end = async () => {
      await store.close();
      await wakeups.close();
      await t.drop();
    };
  });
  afterEach(() => end());

  const happen = async (type: string, n: number, text = '') => {
    const event = { id: uuid(), type, data: { n, text } };
    return store.append([{ stream: `thing-${n % 3}`, expected: 'any', events: [event] }], {});
  };
  const numbers = (events: readonly StoredEvent[]) => events.map(({ data }) => data['n']);
  function collect(from: EventStore, after: string | null, types?: readonly string[]) {
    const seen: StoredEvent[] = [];
    const told: string[] = [];
    const subscription = from.subscribe({ after, ...(types && { types }) }, async (batch) => {
      seen.push(...batch.events);
      told.push(batch.position);
    });
    return { seen, told, subscription };
  }

  test('forty subscribers are one tail: what is appended is read once, each gets its types and every position', async () => {
    const { counting, asked } = counted(store);
    const fed = fedEventStore(counting);
    const all = Array.from({ length: 40 }, (_, n) => collect(fed, null, [`x:${n % 10}`]));
    await happen('x:0', -1);
    await until(() => all[0]!.seen.length === 1);
    // Who began before the first event was known has met the feed by now, or does without another look.
    const before = { ...asked };
    for (let n = 0; n < 100; n += 1) await happen(`x:${n % 10}`, n);
    const head = await store.head();
    await until(() => all.every(({ told }) => told.at(-1) === head));
    expect(asked.tails).toBe(1);
    expect(asked.apart - before.apart).toBe(0);
    expect(asked.pages - before.pages).toBeLessThanOrEqual(100);
    for (const [n, { seen }] of all.entries()) {
      const mine = Array.from({ length: 100 }, (_, m) => m).filter((m) => m % 10 === n % 10);
      expect(numbers(seen)).toEqual(n % 10 === 0 ? [-1, ...mine] : mine);
    }
    await fed.close();
  });

  test('one that begins far behind reads apart and joins, while events come', async () => {
    for (let n = 0; n < 1200; n += 100) await Promise.all(burst(n, 100));
    const { counting, asked } = counted(store);
    const fed = fedEventStore(counting);
    const live = collect(fed, await store.head());
    let writing = true;
    let next = 1200;
    const writer = (async () => {
      while (writing) await happen('x:y', next++);
    })();
    await until(() => live.seen.length > 20);
    const late = collect(fed, null);
    await until(() => late.seen.length > 1400);
    const read_apart = asked.apart;
    await until(() => late.seen.length > 1600);
    writing = false;
    await writer;
    await until(() => late.seen.length === next && live.seen.length === next - 1200);
    expect(numbers(late.seen)).toEqual(numbers(await everything()));
    expect(numbers(live.seen)).toEqual(numbers(await everything()).slice(1200));
    expect([asked.tails, asked.apart]).toEqual([1, read_apart]);
    await fed.close();
  });

  test('a slow one holds up no other, costs no more than the bound, and misses nothing', async () => {
    const { counting, asked } = counted(store);
    const fed = fedEventStore(counting, { keep_bytes: 20_000 });
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const seen: StoredEvent[] = [];
    fed.subscribe({ after: null }, async ({ events }) => {
      seen.push(...events);
      if (seen.length > 0) await gate;
    });
    const fast = collect(fed, null);
    await happen('x:y', 0);
    await until(() => seen.length === 1 && fast.seen.length === 1);
    const before = asked.apart;
    for (let n = 1; n <= 60; n += 1) await happen('x:y', n, 'x'.repeat(1000));
    await until(() => fast.seen.length === 61);
    expect([seen.length, asked.apart - before]).toEqual([1, 0]);
    release();
    await until(() => seen.length === 61);
    expect(asked.apart - before).toBeGreaterThan(0);
    expect(numbers(seen)).toEqual(numbers(fast.seen));
    await fed.close();
  });

  test('without a subscriber nothing is read; the next one finds what came meanwhile', async () => {
    const { counting, asked } = counted(store);
    const fed = fedEventStore(counting);
    const first = collect(fed, null);
    await happen('x:y', 0);
    await until(() => first.seen.length === 1);
    await first.subscription.stop();
    const pages = asked.pages;
    await happen('x:y', 1);
    await happen('x:y', 2);
    const second = collect(fed, first.told.at(-1)!);
    await until(() => second.seen.length === 2);
    expect([numbers(second.seen), asked.tails, asked.pages]).toEqual([[1, 2], 2, pages]);
    await fed.close();
  });

  test('an event that a failover lost is handed to nobody who joins later; the feed begins again', async () => {
    await happen('x:y', 0);
    const fed = fedEventStore(store);
    const position = (await store.head())!;
    const first = collect(fed, position);
    await happen('x:y', 1);
    await until(() => first.seen.length === 1);
    // The server that takes over never had it, and gives its position to another event.
    const replace = `with lost as (delete from domain_events where position > $1
        returning position, stream, revision, type, metadata, recorded_at)
      insert into domain_events (position, stream, revision, id, type, data, metadata, recorded_at)
      select position, stream, revision, $2, type, '{"n": 2}', metadata, recorded_at from lost`;
    await t.db.query(replace, [position, uuid()]);
    const ended = collect(fed, position);
    await expect(ended.subscription.done).rejects.toThrow('the event store has lost event');
    await expect(first.subscription.done).rejects.toThrow('the event store has lost event');
    expect(ended.seen).toEqual([]);
    const again = collect(fed, position);
    await until(() => again.seen.length === 1);
    expect(numbers(again.seen)).toEqual([2]);
    await fed.close();
  });

  test('nor when events of after the failover are kept behind it', async () => {
    const fed = fedEventStore(store);
    // One that stays with its first page, so that all later ones are kept.
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const held = jest.fn(() => gate);
    fed.subscribe({ after: null }, held);
    const live = collect(fed, null);
    await happen('x:y', 1);
    await until(() => live.seen.length === 1 && held.mock.calls.length === 1);
    await happen('x:y', 2);
    await until(() => live.seen.length === 2);
    const [kept, lost] = live.seen;
    await t.db.query('update domain_events set id = $2 where position = $1', [lost!.position, uuid()]);
    await happen('x:y', 3);
    await until(() => live.seen.length === 3);
    const joining = collect(fed, kept!.position);
    await expect(joining.subscription.done).rejects.toThrow(`the event store has lost event ${lost!.id}`);
    expect(joining.seen).toEqual([]);
    release();
    await fed.close();
  });

  test('an engine that fails for good ends every subscription', async () => {
    const broken: EventStore = {
      ...delegated(store),
      subscribe: () => ({ done: Promise.reject(new Error('gone for good')), stop: async () => undefined }),
    };
    const fed = fedEventStore(broken);
    const both = [collect(fed, null), collect(fed, null)];
    for (const { subscription } of both) await expect(subscription.done).rejects.toThrow('gone for good');
    await fed.close();
  });

  function burst(from: number, length: number) {
    return Array.from({ length }, (_, n) => happen('x:y', from + n));
  }
  async function everything(): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    for await (const batch of store.readAll(null)) events.push(...batch.events);
    return events;
  }
});
