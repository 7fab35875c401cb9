import { v7 } from 'uuid';
import { InvalidEvent } from '../../engines/event-store/checks';
import {
  RevisionConflict,
  type EventBatch,
  type EventStore,
  type NewEvent,
  type ReadOptions,
  type StoredEvent,
  type Subscription,
} from '../../engines/event-store/port';
import { PATIENCE_MS } from '../support/patience';

/** One empty store that several nodes can open. */
export interface StoreEngine {
  open(): Promise<EventStore>;
  /** Cuts every connection of the nodes opened, at once; they may reconnect. */
  breakLinks(): Promise<void>;
  close(): Promise<void>;
}

const metadata = { actor_kind: 'user', actor_id: 'u-1', correlation_id: 'c-1' };
export const happened = (type: string, data: NewEvent['data'] = {}): NewEvent => ({ id: v7(), type, data });
const one = (
  stream: string,
  expected: 'none' | 'any' | number,
  type = 'thing:happened',
  data: NewEvent['data'] = {},
) => [{ stream, expected, events: [happened(type, data)] }];

export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** What every event store keeps; see the port's contract. */
export function eventStoreContract(name: string, makeEngine: () => Promise<StoreEngine>): void {
  describe(`event store: ${name}`, () => {
    let engine: StoreEngine;
    let store: EventStore;
    let tails: Subscription[];
    beforeEach(async () => {
      engine = await makeEngine();
      store = await engine.open();
      tails = [];
    });
    afterEach(async () => {
      await Promise.all(tails.map((tail) => tail.stop()));
      await store.close();
      await engine.close();
    });

    test('a stream is read from any revision, as many events as are wanted', async () => {
      const of = (n: number) => happened('thing:happened', { n });
      await store.append([{ stream: 's', expected: 'none', events: [0, 1, 2, 3, 4].map(of) }], metadata);
      const read = async (from: number, limit: number) =>
        (await store.read('s', from, { limit })).map(({ revision }) => revision);
      expect([await read(0, 2), await read(3, 9), await read(1, 1), await read(9, 1)]).toEqual([
        [0, 1],
        [3, 4],
        [1],
        [],
      ]);
    });

    function collect(from: EventStore, after: string | null, types?: string[], batch_size?: number) {
      const seen: StoredEvent[] = [];
      const batches: EventBatch[] = [];
      const tail = from.subscribe(
        { after, ...(types ? { types } : {}), ...(batch_size ? { batch_size } : {}) },
        async (batch) => {
          seen.push(...batch.events);
          batches.push(batch);
        },
      );
      tails.push(tail);
      return { seen, batches, tail };
    }
    async function everything(types?: string[]): Promise<StoredEvent[]> {
      const events: StoredEvent[] = [];
      for await (const batch of store.readAll(null, types ? { types } : {})) events.push(...batch.events);
      return events;
    }
    const refusal = (promise: Promise<unknown>) =>
      promise.then(
        () => undefined,
        (error: unknown) => error,
      );

    test('what was appended is read back whole', async () => {
      const data = {
        text: 'Grüße 🦊 "quoted" \\u0000 line\nbreak',
        big: 12345678901234,
        list: [1, null, { deep: true }],
        empty: {},
      };
      const event = happened('thing:happened', data);
      const result = await store.append([{ stream: 'a-1', expected: 'none', events: [event] }], metadata);
      expect(result.revisions).toEqual({ 'a-1': 0 });
      const [read, ...others] = await store.read('a-1');
      expect(others).toEqual([]);
      expect(read).toEqual({
        ...event,
        stream: 'a-1',
        revision: 0,
        position: result.position,
        metadata,
        recorded_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/),
      });
      expect(await store.head()).toBe(result.position);
      expect(await everything()).toEqual([read]);
    });

    test('a stream that does not exist is empty, and so is a new store', async () => {
      expect(await store.read('nowhere')).toEqual([]);
      expect(await store.head()).toBeNull();
      expect(await everything()).toEqual([]);
    });

    test('a stream is read from any revision', async () => {
      await store.append(
        [{ stream: 's', expected: 'none', events: [happened('x:a'), happened('x:b'), happened('x:c')] }],
        metadata,
      );
      expect((await store.read('s', 1)).map(({ type, revision }) => [type, revision])).toEqual([
        ['x:b', 1],
        ['x:c', 2],
      ]);
    });

    test('a stream is read in part and from its end, over as many pages as it takes', async () => {
      const many = Array.from({ length: 2_500 }, (_, n) => happened('x:a', { n }));
      for (let at = 0; at < many.length; at += 500) {
        const expected = at === 0 ? 'none' : at - 1;
        await store.append([{ stream: 's', expected, events: many.slice(at, at + 500) }], metadata);
      }
      const read = async (...given: [from?: number, options?: ReadOptions]) =>
        (await store.read('s', ...given)).map(({ revision, data }) => (revision === data['n'] ? revision : NaN));
      const up = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n);
      const down = (first: number, count: number) => Array.from({ length: count }, (_, n) => first - n);
      expect(await read()).toEqual(up(0, 2_500));
      expect(await read(0, { limit: 1 })).toEqual([0]);
      expect(await read(7, { limit: 1_500 })).toEqual(up(7, 1_500));
      expect(await read(2_499, { limit: 5 })).toEqual([2_499]);
      expect(await read(2_500, { limit: 5 })).toEqual([]);
      expect(await read(undefined, { backwards: true, limit: 1 })).toEqual([2_499]);
      expect(await read(undefined, { backwards: true, limit: 1_700 })).toEqual(down(2_499, 1_700));
      expect(await read(1_999, { backwards: true })).toEqual(down(1_999, 2_000));
      expect(await read(999, { backwards: true })).toEqual(down(999, 1_000));
      expect(await read(3, { backwards: true, limit: 9 })).toEqual([3, 2, 1, 0]);
      expect(await read(9_000, { backwards: true, limit: 2 })).toEqual([2_499, 2_498]);
      expect(await store.read('nowhere', undefined, { backwards: true, limit: 1 })).toEqual([]);
    });

    test('expectations are checked, and a conflict says what was found', async () => {
      await store.append(one('s', 'none'), metadata);
      await store.append(one('s', 0), metadata);
      await store.append(one('s', 'any'), metadata);
      const conflict = (expected: 'none' | number, stream = 's') =>
        refusal(store.append(one(stream, expected), metadata));
      expect(await conflict('none')).toMatchObject({
        name: 'RevisionConflict',
        stream: 's',
        expected: 'none',
        actual: 2,
      });
      expect(await conflict(1)).toMatchObject({ name: 'RevisionConflict', stream: 's', expected: 1, actual: 2 });
      expect(await conflict(9)).toMatchObject({ expected: 9, actual: 2 });
      expect(await conflict(0, 'new')).toMatchObject({ stream: 'new', expected: 0, actual: null });
      expect(await store.read('new')).toEqual([]);
      expect(await store.read('s')).toHaveLength(3);
    });

    test('twenty racing creators: one wins, nineteen see its stream', async () => {
      const second = await engine.open();
      const tries = Array.from({ length: 20 }, (_, n) =>
        refusal((n % 2 ? second : store).append(one('race', 'none'), metadata)),
      );
      const outcomes = await Promise.all(tries);
      const conflicts = outcomes.filter((outcome) => outcome instanceof RevisionConflict) as RevisionConflict[];
      expect(outcomes.filter((outcome) => outcome === undefined)).toHaveLength(1);
      expect(conflicts.map(({ actual }) => actual)).toEqual(Array(19).fill(0));
      expect(await store.read('race')).toHaveLength(1);
      await second.close();
    });

    test('64 writers on one stream: each revision has one winner, losers see the head', async () => {
      const wins: number[] = [];
      await Promise.all(
        Array.from({ length: 64 }, async (_, writer) => {
          let expected: 'none' | number = 'none';
          for (;;) {
            const outcome: unknown = await store
              .append(one('hot', expected, 'x:y', { writer }), metadata)
              .catch((error) => error);
            if (!(outcome instanceof Error))
              return void wins.push((outcome as { revisions: Record<string, number> }).revisions['hot']!);
            expect(outcome).toBeInstanceOf(RevisionConflict);
            const { actual } = outcome as RevisionConflict;
            expect(actual).toBeGreaterThan(expected === 'none' ? -1 : expected);
            expected = actual!;
          }
        }),
      );
      expect(wins.sort((a, b) => a - b)).toEqual(Array.from({ length: 64 }, (_, n) => n));
      const events = await store.read('hot');
      expect(events.map(({ revision }) => revision)).toEqual(wins);
      expect(new Set(events.map(({ data }) => data['writer'])).size).toBe(64);
    });

    test('one conflict, or one refused append, harms none that arrived with it', async () => {
      await store.append(one('taken', 'none'), metadata);
      const together = await Promise.all([
        refusal(store.append(one('n-1', 'none'), metadata)),
        refusal(store.append(one('taken', 'none'), metadata)),
        refusal(store.append(one('n-2', 'none', 'x:y', { text: 'nul \u0000' }), metadata)),
        refusal(store.append(one('n-3', 'none', 'x:y', { text: 'lone \ud800 surrogate' }), metadata)),
        refusal(store.append(one('n\n4', 'none'), metadata)),
        refusal(
          store.append(
            [{ stream: 'n-5', expected: 'none', events: [{ id: 'no uuid', type: 'x:y', data: {} }] }],
            metadata,
          ),
        ),
        refusal(store.append([{ stream: 'n-6', expected: 'none', events: [] }], metadata)),
        refusal(store.append(one('n-7', 'none'), metadata)),
      ]);
      expect(together.map((outcome) => (outcome as Error | undefined)?.constructor)).toEqual([
        undefined,
        RevisionConflict,
        InvalidEvent,
        InvalidEvent,
        InvalidEvent,
        InvalidEvent,
        InvalidEvent,
        undefined,
      ]);
      expect((await everything()).map(({ stream }) => stream).sort()).toEqual(['n-1', 'n-7', 'taken']);
    });

    test('an append over several streams is stored whole or not at all', async () => {
      await store.append(one('slug-ada', 'none'), metadata);
      const events = [happened('a:b'), happened('a:c')];
      const clash = await refusal(
        store.append([{ stream: 'account-2', expected: 'none', events }, ...one('slug-ada', 'none')], metadata),
      );
      expect(clash).toMatchObject({ name: 'RevisionConflict', stream: 'slug-ada', actual: 0 });
      expect(await store.read('account-2')).toEqual([]);
      const result = await store.append(
        [{ stream: 'account-2', expected: 'none', events }, ...one('slug-bob', 'none')],
        metadata,
      );
      expect(result.revisions).toEqual({ 'account-2': 1, 'slug-bob': 0 });
      expect(result.position).toBe(await store.head());
    });

    test('racing appends over crossing streams never store half', async () => {
      const pairs = Array.from({ length: 40 }, (_, n) => [`p-${n % 7}`, `p-${(n * 3 + 1) % 7}`]).filter(
        ([a, b]) => a !== b,
      );
      const outcomes = await Promise.all(
        pairs.map(([a, b], n) =>
          refusal(store.append([...one(a!, 'none', 'x:y', { n }), ...one(b!, 'none', 'x:y', { n })], metadata)),
        ),
      );
      const counts = new Map<unknown, number>();
      for (const { data } of await everything()) counts.set(data['n'], (counts.get(data['n']) ?? 0) + 1);
      expect([...counts.values()].every((count) => count === 2)).toBe(true);
      expect(counts.size).toBe(outcomes.filter((outcome) => outcome === undefined).length);
    });

    test('an append sent again answers with its first result, whatever came after', async () => {
      const writes = [
        { stream: 'a', expected: 'none' as const, events: [happened('x:a'), happened('x:b')] },
        { stream: 'b', expected: 'none' as const, events: [happened('x:c')] },
      ];
      const first = await store.append(writes, metadata);
      await store.append(one('a', 1), metadata);
      expect(await store.append(writes, metadata)).toEqual(first);
      const [again, twin] = [one('c', 'none'), await engine.open()];
      const results = await Promise.all([
        store.append(again, metadata),
        store.append(again, metadata),
        twin.append(again, metadata),
      ]);
      expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
      expect(await everything()).toHaveLength(5);
      await twin.close();
    });

    test('an event id that belongs to another append is refused', async () => {
      const event = happened('x:a');
      await store.append([{ stream: 'a', expected: 'none', events: [event] }], metadata);
      expect(
        await refusal(store.append([{ stream: 'b', expected: 'none', events: [event] }], metadata)),
      ).toBeInstanceOf(InvalidEvent);
      const mixed = [{ stream: 'b', expected: 'none' as const, events: [event, happened('x:b')] }];
      const beside = store.append(one('beside', 'none'), metadata);
      const refused = await refusal(store.append(mixed, metadata));
      expect(refused).toBeInstanceOf(Error);
      expect(refused).not.toBeInstanceOf(RevisionConflict);
      await beside;
      expect((await everything()).map(({ stream }) => stream)).toEqual(['a', 'beside']);
    });

    test('large appends and many small ones at once keep their order', async () => {
      const big = (stream: string) => ({
        stream,
        expected: 'none' as const,
        events: Array.from({ length: 1500 }, (_, n) => happened('x:big', { n, filler: 'x'.repeat(200) })),
      });
      const small = Array.from({ length: 300 }, (_, n) =>
        store.append(one(`s-${n % 3}`, 'any', 'x:small', { n }), metadata),
      );
      const [first] = await Promise.all([
        store.append([big('big-1')], metadata),
        store.append([big('big-2')], metadata),
        ...small,
      ]);
      expect(first.revisions).toEqual({ 'big-1': 1499 });
      expect((await store.read('big-2')).map(({ data }) => data['n'])).toEqual(
        Array.from({ length: 1500 }, (_, n) => n),
      );
      const of_s1 = (await store.read('s-1')).map(({ data }) => data['n']);
      expect(of_s1).toEqual(Array.from({ length: 100 }, (_, n) => n * 3 + 1));
    });

    test('a tail sees old and new events in order, once, from any point', async () => {
      for (let n = 0; n < 5; n += 1) await store.append(one(`s-${n}`, 'none', 'x:y', { n }), metadata);
      const all = collect(store, null, undefined, 2);
      await until(() => all.seen.length === 5, 'the old events');
      for (let n = 5; n < 8; n += 1) await store.append(one(`s-${n}`, 'none', 'x:y', { n }), metadata);
      await until(() => all.seen.length === 8, 'the new events');
      expect(all.seen.map(({ data }) => data['n'])).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      const rest = collect(store, all.seen[3]!.position);
      await until(() => rest.seen.length === 4, 'the rest');
      expect(rest.seen).toEqual(all.seen.slice(4));
    });

    test('a filter skips other types but moves on', async () => {
      const reached = async ({ batches }: { batches: EventBatch[] }) => {
        const at = batches.at(-1)?.position;
        return at !== undefined && store.compare(at, (await store.head())!) >= 0;
      };
      for (let n = 0; n < 30; n += 1)
        await store.append(one('s', 'any', n % 10 === 9 ? 'x:wanted' : 'x:other', { n }), metadata);
      const tail = collect(store, null, ['x:wanted']);
      await until(() => reached(tail), 'the head');
      expect(tail.seen.map(({ data }) => data['n'])).toEqual([9, 19, 29]);
      await store.append(one('s', 'any', 'x:other'), metadata);
      await until(() => reached(tail), 'the new head');
      expect(tail.batches.at(-1)!.events).toEqual([]);
      expect((await everything(['x:wanted'])).map(({ data }) => data['n'])).toEqual([9, 19, 29]);
    });

    test('positions compare in commit order', async () => {
      const positions: string[] = [];
      for (let n = 0; n < 12; n += 1) positions.push((await store.append(one('s', 'any'), metadata)).position);
      expect([...positions].reverse().sort((a, b) => store.compare(a, b))).toEqual(positions);
      expect(store.compare(positions[3]!, positions[3]!)).toBe(0);
    });

    test('a tail goes on after its node was closed and opened again', async () => {
      const writing = (async () => {
        for (let n = 0; n < 60; n += 1) await store.append(one(`s-${n % 4}`, 'any', 'x:y', { n }), metadata);
      })();
      const seen: unknown[] = [];
      let after: string | null = null;
      while (seen.length < 60) {
        const node = await engine.open();
        const until_here = seen.length + 15;
        const tail = node.subscribe({ after, batch_size: 4 }, async (batch) => {
          seen.push(...batch.events.map(({ data }) => data['n']));
          after = batch.position;
        });
        await until(() => seen.length >= Math.min(until_here, 60), 'a part of the events');
        await node.close();
        await tail.done;
      }
      await writing;
      expect(seen).toEqual(Array.from({ length: 60 }, (_, n) => n));
    });

    test('a slow consumer loses nothing and is never called twice at once', async () => {
      let busy = 0;
      const seen: unknown[] = [];
      const tail = store.subscribe({ after: null, batch_size: 7 }, async ({ events }) => {
        busy += 1;
        expect(busy).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 20));
        seen.push(...events.map(({ data }) => data['n']));
        busy -= 1;
      });
      tails.push(tail);
      await Promise.all(Array.from({ length: 100 }, (_, n) => store.append(one('s', 'any', 'x:y', { n }), metadata)));
      await until(() => seen.length === 100, 'all events');
      expect(seen).toEqual(Array.from({ length: 100 }, (_, n) => n));
    });

    test('a receiver that throws ends its subscription, and no other', async () => {
      const other = collect(store, null);
      const tail = store.subscribe({ after: null }, async () => {
        throw new Error('no more');
      });
      await store.append(one('s', 'none'), metadata);
      await expect(tail.done).rejects.toThrow('no more');
      await store.append(one('s', 0), metadata);
      await until(() => other.seen.length === 2, 'the other subscription');
    });

    test('stop waits for the batch in hand, and a tail that is stopped sees nothing more', async () => {
      await store.append(one('s', 'none'), metadata);
      let finish: () => void = () => undefined;
      let calls = 0;
      const tail = store.subscribe({ after: null }, () => {
        calls += 1;
        return new Promise((resolve) => (finish = resolve));
      });
      await until(() => calls === 1, 'the first batch');
      let stopped = false;
      const stopping = tail.stop().then(() => (stopped = true));
      await store.append(one('s', 0), metadata);
      expect(stopped).toBe(false);
      finish();
      await stopping;
      await tail.done;
      expect(calls).toBe(1);
    });

    test('links cut in mid-flood: nothing acknowledged is lost, nothing stored twice, tails go on', async () => {
      const tail = collect(store, null);
      const acknowledged: string[] = [];
      const refused: unknown[] = [];
      let going = true;
      const writers = Array.from({ length: 12 }, async (_, writer) => {
        for (let n = 0; going; n += 1) {
          const events = [happened('x:y', { writer, n }), happened('x:z', { writer, n })];
          await store.append([{ stream: `w-${writer}`, expected: 'any', events }], metadata).then(
            () => acknowledged.push(events[0]!.id, events[1]!.id),
            (error) => refused.push(error),
          );
        }
      });
      for (let cut = 1; cut <= 4; cut += 1) {
        const goal = acknowledged.length + 60;
        await until(() => acknowledged.length > goal, 'some appends');
        await engine.breakLinks();
      }
      const goal = acknowledged.length + 60;
      await until(() => acknowledged.length > goal, 'appends after the last cut');
      going = false;
      await Promise.all(writers);
      expect(refused).toEqual([]);
      const stored = await everything();
      const stored_ids = new Set(stored.map(({ id }) => id));
      expect(stored_ids.size).toBe(stored.length);
      expect(acknowledged.filter((id) => !stored_ids.has(id))).toEqual([]);
      expect(stored).toHaveLength(acknowledged.length);
      await until(() => tail.seen.length >= stored.length, 'the tail');
      expect(tail.seen).toEqual(stored);
    });

    test('after close an append is refused, and what was under way is finished', async () => {
      const node = await engine.open();
      const under_way = node.append(one('s', 'none'), metadata);
      await node.close();
      await under_way;
      await expect(node.append(one('t', 'none'), metadata)).rejects.toThrow(/closed/);
    });
  });
}
