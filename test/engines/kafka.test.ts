import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CompressionTypes, Kafka as KafkaJs, logLevel } from 'kafkajs';
import { createKafkaBroker, type KafkaBrokerOptions } from '../../engines/broker/kafka/broker';
import { kafkaAddresses } from '../../engines/broker/kafka/client';
import { partitionOf } from '../../engines/broker/partitioner';
import { type Broker, type BrokerRecord, type Offsets, OffsetOutOfRange } from '../../engines/broker/port';
import { until } from '../contracts/broker';
import { type Kafka, startKafka } from './support/kafka';
import { freePort } from './support/process';
import { startToxiproxy, type ProxyLink, type Toxiproxy } from './support/toxiproxy';
import { keptLog } from '../support/log';
import { slowness } from '../support/patience';

const SECONDS = 1_000;
const record = (key: string, value: string) => ({ key, value: Buffer.from(value) });

async function readAll(broker: Broker, topic: string): Promise<BrokerRecord[]> {
  const records: BrokerRecord[] = [];
  for (const [partition, { earliest }] of await broker.bounds(topic))
    for await (const page of broker.read(topic, partition, earliest)) records.push(...page);
  return records;
}

describe('kafka', () => {
  let kafka: Kafka;
  let proxy: Toxiproxy;
  let link: ProxyLink;
  const brokers: Broker[] = [];
  const open = async (options: Partial<KafkaBrokerOptions> = {}) => {
    const broker = await createKafkaBroker({ url: kafka.url, ...options });
    brokers.push(broker);
    return broker;
  };

  beforeAll(async () => {
    const [port, near] = [await freePort(), await freePort()];
    kafka = await startKafka({ port, advertised_port: near });
    proxy = await startToxiproxy();
    link = await proxy.link(port, near);
  });
  afterEach(() => link.heal());
  afterAll(async () => {
    await Promise.all(brokers.map((broker) => broker.close()));
    await kafka.kill();
    await proxy.kill();
  });

  /** Reads a topic as a projection does: effect and checkpoint move together, and only from where the checkpoint is. */
  function follow(broker: Broker, topic: string, group: string, checkpoint: Offsets, seen: string[]) {
    return broker.consume({
      topic,
      group,
      start: async (partitions) => new Map(partitions.map((p) => [p, checkpoint.get(p) ?? 0])),
      async onBatch({ records, progress }) {
        for (const [partition, { from, to }] of progress) {
          if ((checkpoint.get(partition) ?? 0) !== from) continue;
          checkpoint.set(partition, to);
          for (const r of records) if (r.partition === partition) seen.push(r.value.toString());
        }
      },
    });
  }

  /** Publishers that try again what was refused, as webhook senders do, until told to end; what was acknowledged. */
  function flood(broker: Broker, topic: string) {
    const acked: string[] = [];
    let flooding = true;
    const publishers = Array.from({ length: 8 }, async (_, publisher) => {
      for (let n = 0; flooding; n += 1) {
        const value = `${publisher}:${n}`;
        try {
          await broker.publish(topic, [record(`k${publisher}`, value)]);
          acked.push(value);
        } catch {
          await new Promise((resume) => setTimeout(resume, 50)); // never acknowledged: owed nothing
        }
      }
    });
    const end = async () => {
      flooding = false;
      await Promise.all(publishers);
      return acked;
    };
    return { acked, end };
  }

  test('addresses are read strictly', () => {
    expect(kafkaAddresses('kafka://h1:9092,h2')).toEqual(['h1:9092', 'h2:9092']);
    for (const wrong of ['kafka://', 'kafka://a b', 'http://h1', 'kafka://user:secret@h1', 'kafka://h1:9092/topic'])
      expect(() => kafkaAddresses(wrong)).toThrow('kafka://host:port');
  });

  test('a cluster that is not there is said in one line', async () => {
    const nowhere = createKafkaBroker({ url: 'kafka://127.0.0.1:9', start_timeout_ms: 1_000 });
    await expect(nowhere).rejects.toThrow(/^kafka at 127\.0\.0\.1:9 cannot be used: /);
  });

  test('keys lie where our partitioner says, and two openings see one log', async () => {
    const [one, two] = [await open(), await open()];
    expect(one.id).toMatch(/^kafka:./);
    expect(two.id).toBe(one.id);
    await one.ensureTopics(['placed'], 4);
    const keys = Array.from({ length: 40 }, (_, n) => `key-${n}`);
    await one.publish(
      'placed',
      keys.map((key) => record(key, key)),
    );
    for (const { key, partition } of await readAll(two, 'placed')) expect(partition).toBe(partitionOf(key, 4));
  });

  test('a topic of somebody else that drops records by itself is refused by name and setting', async () => {
    const broker = await open();
    const admin = new KafkaJs({ brokers: kafkaAddresses(kafka.url), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const make = async (topic: string, settings: Record<string, string>) => {
      const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
      await admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }], waitForLeaders: true });
      return topic;
    };
    const kept = { 'retention.ms': '-1', 'retention.bytes': '-1' };
    try {
      const refused: [string, string][] = [
        // As the brokers' own settings make a topic.
        [await make('limited-default', {}), 'retention.ms is 604800000, and must be -1'],
        [await make('limited-ms', { ...kept, 'retention.ms': '1000' }), 'retention.ms is 1000, and must be -1'],
        [
          await make('limited-bytes', { ...kept, 'retention.bytes': '5000' }),
          'retention.bytes is 5000, and must be -1',
        ],
        [
          await make('compact', { ...kept, 'cleanup.policy': 'compact' }),
          'cleanup.policy is compact, and must be delete',
        ],
        [
          await make('both', { ...kept, 'cleanup.policy': 'compact,delete' }),
          'cleanup.policy is compact,delete, and must be delete',
        ],
      ];
      const good = await make('kept', kept);
      for (const [topic, why] of refused) {
        const line = `topic ${topic} does not keep its records: ${why}`;
        await expect(broker.ensureTopics(['not-yet', good, topic], 1)).rejects.toThrow(new Error(line));
        await broker.ensureTopics([topic], 1, { limited: true });
      }
      // Refused before anything is made.
      expect(await admin.listTopics()).not.toContain('not-yet');
      await broker.ensureTopics(['not-yet', good], 1);
      await broker.ensureTopics(['not-yet', good], 1);
    } finally {
      await admin.disconnect();
    }
  });

  test('topics that may lose acknowledged records are named in a warning at the start', async () => {
    const admin = new KafkaJs({ brokers: kafkaAddresses(kafka.url), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const settings = { 'retention.ms': '-1', 'retention.bytes': '-1', 'unclean.leader.election.enable': 'true' };
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
    await admin.createTopics({ topics: [{ topic: 'unclean', numPartitions: 1, configEntries }], waitForLeaders: true });
    await admin.disconnect();
    const warned = async (production: boolean) => {
      const log = keptLog();
      const broker = await createKafkaBroker({ url: kafka.url, log, production });
      await broker.ensureTopics(['unclean', 'made'], 1);
      await broker.close();
      const facts = log.lines.map((line) => line.facts as { setting?: string; topics?: string[] });
      return facts.flatMap(({ setting, topics }) => (setting === undefined ? [] : [[setting, topics]]));
    };
    const unclean = ['unclean.leader.election.enable=true', ['unclean']];
    expect(await warned(false)).toEqual([unclean]);
    const both = ['made', 'unclean'];
    const copies = ['min.insync.replicas<2', 'replication factor<3'].map((setting) => [setting, both]);
    expect(await warned(true)).toEqual([unclean, ...copies]);
  });

  test('a publish larger than one send arrives whole and in order', async () => {
    const broker = await open();
    await broker.ensureTopics(['large'], 1);
    const many = Array.from({ length: 9_000 }, (_, n) => record('k', `${n}`.padEnd(700, ' ')));
    await broker.publish('large', many);
    expect((await readAll(broker, 'large')).map(({ value }) => value.toString())).toEqual(
      many.map((m) => m.value.toString()),
    );
  });

  test('an offset that is not in the log ends the consumer with it', async () => {
    const broker = await open();
    await broker.ensureTopics(['short'], 1);
    await broker.publish('short', [record('a', '0'), record('a', '1'), record('a', '2')]);
    await broker.trim('short', 0, 2);
    const from = (offset: number) =>
      broker.consume({
        topic: 'short',
        group: `from-${offset}`,
        start: async () => new Map([[0, offset]]),
        onBatch: async () => {},
      });
    await expect(from(1).done).rejects.toThrow(OffsetOutOfRange);
    await expect(from(99).done).rejects.toThrow(OffsetOutOfRange);
  });

  test('whatever a group has stored, it reads on from the checkpoint', async () => {
    const broker = await open();
    const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `${from + n}`);
    const admin = new KafkaJs({ brokers: kafkaAddresses(kafka.url), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const readsOn = async (stored: number | undefined, checkpoint: number) => {
      const topic = `stored-${stored}-${checkpoint}`;
      await broker.ensureTopics([topic], 1);
      await broker.publish(
        topic,
        numbers(0, 10).map((n) => record('k', n)),
      );
      if (stored !== undefined)
        await admin.setOffsets({ groupId: topic, topic, partitions: [{ partition: 0, offset: String(stored) }] });
      const places: Offsets = new Map([[0, checkpoint]]);
      const seen: string[] = [];
      const tail = follow(broker, topic, topic, places, seen);
      await until(() => seen.length >= 10 - checkpoint);
      await broker.publish(topic, [record('k', '10')]);
      await until(() => seen.length >= 11 - checkpoint);
      await tail.stop();
      expect(seen).toEqual(numbers(checkpoint, 11));
    };
    await Promise.all([readsOn(undefined, 5), readsOn(2, 5), readsOn(8, 5), readsOn(10, 5), readsOn(10, 10)]);
    await admin.disconnect();
  });

  test('the first record of an assignment waits for no fetch that finds nothing', async () => {
    // A client that slept one fetch wait at an assignment would be far beyond the deadline.
    const broker = await open({ times: { fetch_wait_ms: 25_000, stall_ms: 120_000 } });
    await broker.ensureTopics(['prompt'], 2);
    await broker.publish('prompt', [record('k', '0')]);
    let answered_at = 0;
    let first_at = 0;
    const tail = broker.consume({
      topic: 'prompt',
      group: 'prompt',
      async start(partitions) {
        answered_at = performance.now();
        return new Map(partitions.map((p) => [p, 0]));
      },
      onBatch: async () => void (first_at = performance.now()),
    });
    await until(() => first_at > 0, 60 * SECONDS);
    await tail.stop();
    expect(first_at - answered_at).toBeLessThan(20 * SECONDS * slowness());
  });

  test('what others wrote is read too: compressed, in transactions, with times and headers of their own', async () => {
    const broker = await open();
    const outside = new KafkaJs({ brokers: kafkaAddresses(kafka.url), logLevel: logLevel.NOTHING });
    const [admin, plain] = [outside.admin(), outside.producer()];
    const transactional = outside.producer({ transactionalId: 'others', idempotent: true, maxInFlightRequests: 1 });
    await Promise.all([admin.connect(), plain.connect(), transactional.connect()]);
    try {
      const topic = 'others';
      await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true });
      const headers = { one: 'a "b"', two: ['first', 'second'], empty: '' };
      await plain.send({
        topic,
        messages: [
          { key: 'old', value: 'past', timestamp: '86400000', headers },
          { key: null, value: 'no key', timestamp: '1123' },
          { key: 'none', value: null },
        ],
      });
      const many = Array.from({ length: 500 }, (_, n) => ({ key: `k${n % 3}`, value: `gzip ${n}` }));
      await plain.send({ topic, compression: CompressionTypes.GZIP, messages: many });
      const inTransaction = async (value: string, end: 'commit' | 'abort') => {
        const transaction = await transactional.transaction();
        await transaction.send({ topic, messages: [{ key: 't', value }] });
        await transaction[end]();
      };
      await inTransaction('kept', 'commit');
      await inTransaction('given up', 'abort');
      await inTransaction('kept too', 'commit');
      await plain.send({ topic, messages: [{ key: 'last', value: 'last' }] });

      const seen: BrokerRecord[] = [];
      const tail = broker.consume({
        topic,
        group: topic,
        start: async () => new Map([[0, 0]]),
        onBatch: async ({ records }) => void seen.push(...records),
      });
      const expected = ['past', 'no key', '', ...many.map(({ value }) => value), 'kept', 'kept too', 'last'];
      await until(() => seen.length >= expected.length);
      await tail.stop();
      expect(seen.map(({ value }) => value.toString())).toEqual(expected);
      expect(await readAll(broker, topic)).toEqual(seen);
      expect(seen[0]).toMatchObject({
        key: 'old',
        offset: 0,
        appended_at: '1970-01-02T00:00:00.000Z',
        headers: { one: 'a "b"', two: 'first', empty: '' },
      });
      expect(seen[1]).toMatchObject({ key: '', offset: 1, appended_at: '1970-01-01T00:00:01.123Z', headers: {} });
      // From the middle of a compressed batch, and from a marker on.
      const [marker] = seen.slice(-2).map(({ offset }) => offset + 1);
      for (const from of [250, marker!]) {
        const rest: string[] = [];
        for await (const page of broker.read(topic, 0, from)) rest.push(...page.map(({ value }) => value.toString()));
        expect(rest).toEqual(seen.filter(({ offset }) => offset >= from).map(({ value }) => value.toString()));
      }
    } finally {
      await Promise.all([admin.disconnect(), plain.disconnect(), transactional.disconnect()]);
    }
  });

  test('a connection on which nothing waits sets no timers', async () => {
    const broker = await open();
    await broker.ensureTopics(['idle'], 1);
    await broker.publish('idle', [record('k', 'v')]);
    const timers = jest.spyOn(globalThis, 'setTimeout');
    try {
      await new Promise((resume) => setTimeout(resume, 500));
      await broker.publish('idle', [record('k', 'v')]);
      const delays = timers.mock.calls.map(([, ms]) => ms ?? 0);
      expect(delays.filter((ms) => ms < 0)).toEqual([]);
      // kafkajs' own look came every millisecond; what a publish sets waits longer.
      expect(delays.filter((ms) => ms < 20)).toEqual([]);
    } finally {
      timers.mockRestore();
    }
  });

  test('answers lost after the records were stored: a new producer, and nothing acknowledged is missing', async () => {
    const broker = await open({ publish_timeout_ms: 2 * SECONDS });
    await broker.ensureTopics(['unsure'], 1);
    const acked: string[] = [];
    const publish = async (value: string) => {
      await broker.publish('unsure', [record('k', value)]);
      acked.push(value);
    };
    await publish('first');
    for (let round = 0; round < 3; round += 1) {
      // Requests pass, answers do not: the record is stored, and the publisher cannot know it.
      const silence = await link.toxic('timeout', 'downstream', { timeout: 0 });
      const before = storedCount() + 1;
      const unsure = publish(`unsure-${round}`).then(
        () => 'stored',
        () => 'refused',
      );
      await until(() => storedCount() >= before);
      await link.down();
      await silence();
      expect(await unsure).toBe('refused');
      await link.up();
      // As many records as in the send whose outcome is unknown: what the old producer would pass off as its
      // repetition.
      for (let n = 0; n < 5; n += 1) await publish(`after-${round}-${n}`);
    }
    const stored = (await readAll(broker, 'unsure')).map(({ value }) => value.toString());
    expect(acked.filter((value) => !stored.includes(value))).toEqual([]);
    expect(stored.length).toBeGreaterThanOrEqual(acked.length);

    /** Size of the log on disk, asked past the link. */
    function storedCount(): number {
      const log = readFileSync(join(kafka.data_dir, 'log/unsure-0/00000000000000000000.log'), 'latin1');
      return log.match(/unsure-\d|first/g)?.length ?? 0;
    }
  });

  test(
    'brokers killed and started again in a flood: nothing acknowledged is lost, nothing doubled, the tail goes on',
    async () => {
      const broker = await open();
      await broker.ensureTopics(['flood'], 4);
      const seen: string[] = [];
      const tail = follow(broker, 'flood', 'flood', new Map(), seen);
      const { acked, end } = flood(broker, 'flood');
      for (let kill = 0; kill < 2; kill += 1) {
        const before = acked.length;
        await until(() => acked.length > before + 200, 60 * SECONDS);
        await kafka.kill();
        await kafka.restart();
      }
      const before = acked.length;
      await until(() => acked.length > before + 200, 60 * SECONDS);
      const all = await end();
      await until(() => new Set(seen).size >= new Set(all).size && all.every((v) => seen.includes(v)), 60 * SECONDS);
      await tail.stop();
      const log = await readAll(broker, 'flood');
      // Every place of the log had its effect once; a record that was sent twice lies in the log twice, for the ledger
      // behind it to see.
      expect([...seen].sort()).toEqual(log.map(({ value }) => value.toString()).sort());
      for (let publisher = 0; publisher < 8; publisher += 1) {
        const first_seen = [...new Set(seen.filter((v) => v.startsWith(`${publisher}:`)))].map((v) =>
          Number(v.split(':')[1]),
        );
        expect(first_seen).toEqual([...first_seen].sort((a, b) => a - b));
      }
    },
    360 * SECONDS,
  );

  test(
    'a link that goes silent: the consumer reads on by itself',
    async () => {
      const broker = await open({ times: { stall_ms: 6 * SECONDS } });
      const aside = await createKafkaBroker({ url: kafka.url });
      brokers.push(aside);
      await broker.ensureTopics(['silent'], 2);
      const seen: string[] = [];
      const tail = follow(broker, 'silent', 'silent', new Map(), seen);
      await aside.publish('silent', [record('a', 'before')]);
      await until(() => seen.length === 1);
      const heal = [
        await link.toxic('timeout', 'downstream', { timeout: 0 }),
        await link.toxic('timeout', 'upstream', { timeout: 0 }),
      ];
      await new Promise((resume) => setTimeout(resume, 8 * SECONDS));
      for (const each of heal) await each();
      await until(async () =>
        aside.publish('silent', [record('a', 'after')]).then(
          () => true,
          () => false,
        ),
      );
      await until(() => seen.includes('after'), 30 * SECONDS);
      await tail.stop();
    },
    360 * SECONDS,
  );

  test(
    'a member stopped beyond its session: its partitions go on elsewhere, and its late batch has no effect',
    async () => {
      const broker = await open();
      await broker.ensureTopics(['zombie'], 2);
      await broker.publish(
        'zombie',
        Array.from({ length: 50 }, (_, n) => record(`k${n}`, `${n}`)),
      );
      const checkpoint: Offsets = new Map();
      const seen: string[] = [];
      let hold!: () => void;
      let held = 0;
      const zombie = (await open()).consume({
        topic: 'zombie',
        group: 'zombie',
        start: async (partitions) => new Map(partitions.map((p) => [p, checkpoint.get(p) ?? 0])),
        async onBatch({ progress, records }) {
          held = records.length;
          await new Promise<void>((resume) => (hold = resume));
          // What a transaction's compare-and-set does: someone else has moved it, so nothing of this batch counts.
          for (const [partition, { from }] of progress)
            if ((checkpoint.get(partition) ?? 0) !== from) throw new Error('checkpoint lost');
          seen.push('zombie');
        },
      });
      const zombie_end = zombie.done.catch((error: Error) => error.message);
      await until(() => held > 0);
      const second = follow(await open(), 'zombie', 'zombie', checkpoint, seen);
      // One partition goes to the second member while the first one still holds its batch; later the first one's stop
      // brings the other.
      await until(() => checkpoint.size > 0);
      hold();
      expect(await zombie_end).toBe('checkpoint lost');
      await until(() => seen.length === 50, 60 * SECONDS);
      await second.stop();
      expect(seen.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n));
    },
    360 * SECONDS,
  );
});
