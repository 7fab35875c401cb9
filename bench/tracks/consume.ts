import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Kafka, logLevel } from 'kafkajs';
import { createKafkaBroker } from '../../engines/broker/kafka/broker';
import { kafkaAddresses } from '../../engines/broker/kafka/client';
import type { Broker } from '../../engines/broker/port';
import { type Kafka as KafkaNode, startKafka } from '../../test/engines/support/kafka';
import { compare, type Contender, type Work } from '../comparison';
import { peerFolder, ROOT, type TrackOptions } from '../harness';
import { pinToSystemCore, treeCpu } from '../postgres';
import { report } from '../report';

const TOPIC = 'consumed';
const PARTITIONS = 4;
const VALUE_BYTES = 300;
const ACCOUNTS = 50;
/** Deadline of a consumer for its share; a stall must fail the track, not hang it. */
const PATIENCE_MS = 120_000;

/** Expected result: the number of records, and the sum of the numbers that the values begin with. */
interface Expected {
  count: number;
  sum: number;
}

/**
 * Records of one topic through a consumer group of one member, from the call that starts it to the last record; joining
 * and fetching ahead count for all contenders.
 */
export async function run(options: TrackOptions): Promise<boolean> {
  const installer = pathToFileURL(join(ROOT, 'scripts/engines/install.mjs')).href;
  const { installEngines } = (await import(installer)) as { installEngines(names: string[]): Record<string, string> };
  const engines = installEngines(['kafka']);
  const node = await startKafka();
  pinToSystemCore(node.pid);
  const engineCpu = () => treeCpu(node.pid);
  let broker: Broker | undefined;
  try {
    broker = await createKafkaBroker({ url: node.url });
    const expected = await fill(broker, options.smoke ? 5_000 : 600_000);
    const result = await compare({
      name: `${expected.count} records of ${VALUE_BYTES} bytes, ${PARTITIONS} partitions, a new group each time`,
      contenders: [
        ours(broker, expected, engineCpu),
        bare(node, expected, engineCpu),
        await platformatic(node, expected, engineCpu),
      ],
      subject: 'lumio',
      floors: { 'kafkajs eachBatch': 1, '@platformatic/kafka': 1 },
      rounds: options.smoke ? 1 : 5,
      ms: 1,
      engineCpu,
    });
    return report('consume', [result], { engines }, options);
  } finally {
    await broker?.close();
    await node.kill();
    rmSync(node.data_dir, { recursive: true, force: true });
  }
}

async function fill(broker: Broker, count: number): Promise<Expected> {
  await broker.ensureTopics([TOPIC], PARTITIONS);
  let sum = 0;
  for (let made = 0; made < count;) {
    const records = Array.from({ length: Math.min(5_000, count - made) }, (_, n) => {
      const value = Buffer.alloc(VALUE_BYTES, 'x');
      value.writeUInt32LE(Math.floor(Math.random() * 2 ** 32));
      sum += value.readUInt32LE();
      return { key: `account-${(made + n) % ACCOUNTS}`, value };
    });
    await broker.publish(TOPIC, records);
    made += records.length;
  }
  return { count, sum };
}

/** Counts and sums the records; the clock starts with the constructor. */
class Tally {
  readonly done: Promise<Work>;
  private resolve!: (work: Work) => void;
  private reject!: (error: Error) => void;
  private count = 0;
  private sum = 0;
  private readonly next = new Map<number, number>();
  private readonly start: { client: NodeJS.CpuUsage; engine: number; at: bigint };
  private readonly timer = setTimeout(
    () => this.reject(new Error(`${this.count} of ${this.expected.count} records within ${PATIENCE_MS} ms`)),
    PATIENCE_MS,
  );

  constructor(
    private readonly expected: Expected,
    private readonly engineCpu: () => number,
  ) {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    const over = () => clearTimeout(this.timer);
    this.done.then(over, over);
    this.start = { client: process.cpuUsage(), engine: engineCpu(), at: process.hrtime.bigint() };
  }

  /** Takes a record: each partition's must arrive in order, none missing, none twice. */
  take(partition: number, offset: number, value: Buffer): void {
    const next = this.next.get(partition) ?? 0;
    if (offset !== next) this.reject(new Error(`partition ${partition}: ${offset} came where ${next} was next`));
    this.next.set(partition, next + 1);
    this.count += 1;
    this.sum += value.readUInt32LE();
  }

  /** Called after each batch. */
  arrived(): void {
    if (this.count < this.expected.count) return;
    const { client, engine, at } = this.start;
    const seconds = Number(process.hrtime.bigint() - at) / 1e9;
    const used = process.cpuUsage(client);
    if (this.count > this.expected.count || this.sum !== this.expected.sum)
      this.reject(new Error(`${this.count} records with the sum ${this.sum}, not ${JSON.stringify(this.expected)}`));
    this.resolve({
      units: this.count,
      seconds,
      client_us: used.user + used.system,
      engine_us: this.engineCpu() - engine,
    });
  }

  readonly fail = (error: unknown): void => this.reject(error as Error);
}

function ours(broker: Broker, expected: Expected, engineCpu: () => number): Contender {
  return {
    name: 'lumio',
    async run() {
      const tally = new Tally(expected, engineCpu);
      const consumer = broker.consume({
        topic: TOPIC,
        group: randomUUID(),
        start: async (partitions) => new Map(partitions.map((partition) => [partition, 0])),
        async onBatch({ records }) {
          for (const { partition, offset, value } of records) tally.take(partition, offset, value);
          tally.arrived();
        },
      });
      consumer.done.catch(tally.fail);
      try {
        return await tally.done;
      } finally {
        await consumer.stop();
      }
    },
  };
}

/** A loop written by hand, with kafkajs' defaults; it commits no offsets at all, which saves it work. */
function bare(node: KafkaNode, expected: Expected, engineCpu: () => number): Contender {
  const kafka = new Kafka({ brokers: kafkaAddresses(node.url), logLevel: logLevel.NOTHING });
  return {
    name: 'kafkajs eachBatch',
    async run() {
      const tally = new Tally(expected, engineCpu);
      const consumer = kafka.consumer({ groupId: randomUUID() });
      await consumer.connect();
      try {
        await consumer.subscribe({ topics: [TOPIC], fromBeginning: true });
        await consumer.run({
          autoCommit: false,
          async eachBatch({ batch: { partition, messages } }) {
            for (const { offset, value } of messages) tally.take(partition, Number(offset), value!);
            tally.arrived();
          },
        });
        return await tally.done;
      } finally {
        await consumer.disconnect();
      }
    },
  };
}

interface PlatformaticMessage {
  partition: number;
  offset: bigint;
  value: Buffer;
}

/** The part of `@platformatic/kafka` that is used here. */
interface Platformatic {
  Consumer: new (options: { clientId: string; groupId: string; bootstrapBrokers: string[] }) => {
    consume(options: {
      topics: string[];
      mode: string;
      autocommit: boolean;
    }): Promise<NodeJS.EventEmitter & { close(): Promise<void> }>;
    close(force?: boolean): Promise<void>;
  };
}

/** Its stream emits single records, so the end is checked after each one. */
async function platformatic(node: KafkaNode, expected: Expected, engineCpu: () => number): Promise<Contender> {
  // An ES module alone: no require.
  const { Consumer } = (await import(
    pathToFileURL(join(peerFolder('@platformatic/kafka'), 'dist/index.js')).href
  )) as Platformatic;
  return {
    name: '@platformatic/kafka',
    async run() {
      const tally = new Tally(expected, engineCpu);
      const consumer = new Consumer({
        clientId: 'bench',
        groupId: randomUUID(),
        bootstrapBrokers: kafkaAddresses(node.url),
      });
      try {
        const stream = await consumer.consume({ topics: [TOPIC], mode: 'earliest', autocommit: false });
        stream.on('error', tally.fail);
        stream.on('data', ({ partition, offset, value }: PlatformaticMessage) => {
          tally.take(partition, Number(offset), value);
          tally.arrived();
        });
        const work = await tally.done;
        await stream.close();
        return work;
      } finally {
        await consumer.close(true);
      }
    },
  };
}
