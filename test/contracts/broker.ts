import { randomUUID } from 'node:crypto';
import {
  type Broker,
  type BrokerRecord,
  type Consumer,
  InvalidRecord,
  MAX_VALUE_BYTES,
  type Offsets,
  OffsetOutOfRange,
} from '../../engines/broker/port';
import { PATIENCE_MS } from '../support/patience';

export interface BrokerFixture {
  /** Another adapter instance on the same log, as another process would have. */
  open(): Promise<Broker>;
  stop(): Promise<void>;
}

/** Resolves when `condition` holds; rejects after `deadline_ms`. */
export async function until(condition: () => boolean | Promise<boolean>, deadline_ms = PATIENCE_MS): Promise<void> {
  for (const end = Date.now() + deadline_ms; !(await condition());) {
    if (Date.now() > end) throw new Error(`not within ${deadline_ms} ms: ${condition}`);
    await new Promise((resume) => setTimeout(resume, 10));
  }
}

const text = (record: BrokerRecord) => record.value.toString();
const record = (key: string, value: string) => ({ key, value: Buffer.from(value) });

/** What every broker adapter holds. */
export function brokerContract(name: string, make: () => Promise<BrokerFixture>): void {
  describe(`broker contract: ${name}`, () => {
    let fixture: BrokerFixture;
    let one: Broker;
    let two: Broker;
    beforeAll(async () => {
      fixture = await make();
      [one, two] = [await fixture.open(), await fixture.open()];
    });
    afterAll(async () => {
      await Promise.all([one.close(), two.close()]);
      await fixture.stop();
    });

    async function topic(partitions = 4): Promise<string> {
      const made = `t-${randomUUID()}`;
      await one.ensureTopics([made], partitions);
      return made;
    }
    async function readAll(broker: Broker, from: string): Promise<BrokerRecord[]> {
      const records: BrokerRecord[] = [];
      for (const [partition, { earliest }] of await broker.bounds(from))
        for await (const page of broker.read(from, partition, earliest)) records.push(...page);
      return records;
    }
    /** Reads a topic as a projection does: the checkpoint is moved with the effect. */
    function follow(
      broker: Broker,
      from: string,
      group: string,
      checkpoint: Offsets,
      each: (record: BrokerRecord) => unknown,
      max = 50,
    ): Consumer {
      return broker.consume({
        topic: from,
        group,
        max_records: max,
        start: async (partitions) =>
          new Map(partitions.flatMap((p) => (checkpoint.has(p) ? [[p, checkpoint.get(p)!] as const] : []))),
        async onBatch(batch) {
          // Fenced like a checkpoint: a batch that another member was faster with has no effect.
          for (const [partition, { from: begin, to }] of batch.progress) {
            if ((checkpoint.get(partition) ?? 0) !== begin) continue;
            checkpoint.set(partition, to);
            for (const r of batch.records) if (r.partition === partition) await each(r);
          }
        },
      });
    }

    test('a topic is made once and keeps its partitions', async () => {
      const made = `t-${randomUUID()}`;
      await Promise.all([one.ensureTopics([made], 3), two.ensureTopics([made], 3)]);
      await two.ensureTopics([made], 9);
      expect([...(await two.bounds(made)).keys()]).toEqual([0, 1, 2]);
    });

    test('records come back as they were given', async () => {
      const made = await topic();
      const value = Buffer.from([0, 255, 10, 92, 0]);
      await one.publish(made, [
        { key: 'ключ', value, headers: { trace: 'a"\u0000b' } },
        { key: '', value: Buffer.alloc(0) },
      ]);
      const records = await readAll(two, made);
      expect(
        records
          .map(({ key, value: v, headers }) => ({ key, value: v.toString('hex'), headers }))
          .sort((a, b) => a.key.length - b.key.length),
      ).toEqual([
        { key: '', value: '', headers: {} },
        { key: 'ключ', value: value.toString('hex'), headers: { trace: 'a"\u0000b' } },
      ]);
      for (const r of records) expect(Math.abs(Date.parse(r.appended_at) - Date.now())).toBeLessThan(60_000);
    });

    test('a publish tells where its records lie, also among others and when it leaves in several pieces', async () => {
      const made = await topic();
      const large = Buffer.alloc(900_000);
      const of = (publisher: number) => [
        ...['a', 'b', 'c'].map((key) => ({ key, value: Buffer.from(`${publisher}`) })),
        ...(publisher === 3 ? ['a', 'a', 'b'].map((key) => ({ key, value: large })) : []),
      ];
      const told = await Promise.all(
        Array.from({ length: 8 }, (_, publisher) => (publisher % 2 ? one : two).publish(made, of(publisher))),
      );
      expect([...(await one.publish(made, []))]).toEqual([]);
      const records = await readAll(one, made);
      told.forEach((ends, publisher) => {
        const own = records.filter((r) => (r.value.length > 100 ? publisher === 3 : text(r) === `${publisher}`));
        const lies = new Map<number, number>();
        for (const { partition, offset } of own) lies.set(partition, Math.max(lies.get(partition) ?? 0, offset + 1));
        expect(new Map(ends)).toEqual(lies);
      });
    });

    test('a tail sees every record of 12 publishers once, without a hole, each key in its order', async () => {
      const made = await topic();
      const per_publisher = 60;
      const seen: BrokerRecord[] = [];
      const tail = follow(one, made, 'tail', new Map(), (r) => seen.push(r), 7);
      await Promise.all(
        Array.from({ length: 12 }, async (_, publisher) => {
          const broker = publisher % 2 ? one : two;
          const sent: Promise<unknown>[] = [];
          for (let n = 0; n < per_publisher; n += 1) {
            sent.push(broker.publish(made, [record(`key-${publisher}`, `${n}`)]));
            if (n % 5 === publisher % 5) await sent[n];
          }
          await Promise.all(sent);
        }),
      );
      await until(() => seen.length >= 12 * per_publisher);
      await tail.stop();
      expect(seen).toHaveLength(12 * per_publisher);
      for (let publisher = 0; publisher < 12; publisher += 1) {
        const values = seen.filter(({ key }) => key === `key-${publisher}`).map(text);
        expect(values).toEqual(Array.from({ length: per_publisher }, (_, n) => String(n)));
      }
      const offsets = new Map<number, number>();
      for (const r of seen) {
        expect(r.offset).toBeGreaterThanOrEqual(offsets.get(r.partition) ?? 0);
        offsets.set(r.partition, r.offset + 1);
      }
      for (const [partition, { next }] of await two.bounds(made)) expect(offsets.get(partition) ?? 0).toBe(next);
    });

    test('reading goes on where the caller says', async () => {
      const made = await topic(1);
      await one.publish(
        made,
        Array.from({ length: 30 }, (_, n) => record('a', `${n}`)),
      );
      const values: string[] = [];
      const consumer = follow(two, made, 'resume', new Map([[0, 12]]), (r) => values.push(text(r)));
      await until(() => values.length >= 18);
      await consumer.stop();
      expect(values).toEqual(Array.from({ length: 18 }, (_, n) => String(n + 12)));
      const range: string[] = [];
      for await (const page of one.read(made, 0, 5, 8)) range.push(...page.map(text));
      expect(range).toEqual(['5', '6', '7']);
    });

    test('two members share the partitions; when one leaves the other reads on', async () => {
      const made = await topic(4);
      const checkpoint: Offsets = new Map();
      const by: Record<string, Set<number>> = { first: new Set(), second: new Set() };
      const values: string[] = [];
      const member = (broker: Broker, who: string) =>
        follow(broker, made, 'shared', checkpoint, (r) => {
          by[who]!.add(r.partition);
          values.push(text(r));
        });
      const first = member(one, 'first');
      const second = member(two, 'second');
      let sent = 0;
      const round = async () => {
        await one.publish(
          made,
          Array.from({ length: 20 }, () => record(`k${sent % 40}`, `${sent++}`)),
        );
      };
      await until(async () => {
        await round();
        return by.first!.size > 0 && by.second!.size > 0;
      });
      await first.stop();
      for (let n = 0; n < 3; n += 1) await round();
      await until(() => values.length >= sent);
      expect(values.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: sent }, (_, n) => n));
      await second.stop();
    });

    test('a slow consumer is fed batch by batch, never two at once', async () => {
      const made = await topic(2);
      await one.publish(
        made,
        Array.from({ length: 60 }, (_, n) => record(`k${n}`, `${n}`)),
      );
      let running = 0;
      let most = 0;
      let seen = 0;
      const consumer = two.consume({
        topic: made,
        group: 'slow',
        max_records: 10,
        start: async () => new Map(),
        async onBatch({ records }) {
          most = Math.max(most, ++running);
          await new Promise((resume) => setTimeout(resume, 20));
          running -= 1;
          seen += records.length;
        },
      });
      await until(() => seen >= 60);
      await consumer.stop();
      expect({ seen, most }).toEqual({ seen: 60, most: 1 });
    });

    test('a throw of onBatch ends the consumer with it, and nothing is skipped', async () => {
      const made = await topic(1);
      await one.publish(
        made,
        Array.from({ length: 5 }, (_, n) => record('a', `${n}`)),
      );
      const checkpoint: Offsets = new Map();
      const values: string[] = [];
      const failing = one.consume({
        topic: made,
        group: 'throw',
        start: async () => checkpoint,
        onBatch: () => Promise.reject(new Error('boom')),
      });
      await expect(failing.done).rejects.toThrow('boom');
      const next = follow(one, made, 'throw', checkpoint, (r) => values.push(text(r)));
      await until(() => values.length >= 5);
      await next.stop();
      expect(values).toEqual(['0', '1', '2', '3', '4']);
    });

    test('what is trimmed is refused, what is left is read', async () => {
      const made = await topic(1);
      await one.publish(
        made,
        Array.from({ length: 10 }, (_, n) => record('a', `${n}`)),
      );
      await one.trim(made, 0, 4);
      expect(await two.bounds(made)).toEqual(new Map([[0, { earliest: 4, next: 10 }]]));
      expect((await readAll(two, made)).map(text)).toEqual(['4', '5', '6', '7', '8', '9']);
      await expect(two.read(made, 0, 3)[Symbol.asyncIterator]().next()).rejects.toThrow(OffsetOutOfRange);
      await one.trim(made, 0, 99);
      expect(await two.bounds(made)).toEqual(new Map([[0, { earliest: 10, next: 10 }]]));
      await one.publish(made, [record('a', 'after')]);
      expect((await readAll(two, made)).map((r) => [r.offset, text(r)])).toEqual([[10, 'after']]);
    });

    test('values of 2 MiB pass, larger ones are refused', async () => {
      const made = await topic(1);
      const large = Buffer.alloc(MAX_VALUE_BYTES, 'ab');
      await Promise.all(Array.from({ length: 4 }, () => one.publish(made, [{ key: 'a', value: large }])));
      const records = await readAll(two, made);
      expect(records.map(({ value }) => value.equals(large))).toEqual([true, true, true, true]);
      await expect(one.publish(made, [{ key: 'a', value: Buffer.alloc(MAX_VALUE_BYTES + 1) }])).rejects.toThrow(
        InvalidRecord,
      );
    });

    test('an unknown topic is an error', async () => {
      await expect(one.publish('nowhere', [record('a', 'b')])).rejects.toThrow('nowhere');
    });
  });
}
