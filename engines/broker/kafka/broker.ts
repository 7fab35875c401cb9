import { EngineUnavailable } from '../../../kernel/failures';
import type { Logger } from '../../log/port';
import type { Metrics } from '../../metrics/port';
import { retry } from '../../../lib/async/retry';
import { isPassingAtKafka, KafkaClient, type KafkaConnection, NoSuchTopic, typeOf } from './client';
import { CONSUMER_TIMES, KafkaConsumer, type KafkaConsumerTimes } from './consumer';
import { PerTopic } from '../per-topic';
import { ActiveSet } from '../../active-set';
import { warnOfWeakTopics } from './durability';
import { KafkaPublisher } from './publisher';
import { KafkaReader, type Page } from './reader';
import { refuseLimited } from './retention';
import {
  type Bounds,
  type Broker,
  type BrokerRecord,
  type ConsumeOptions,
  type Consumer,
  type Ends,
  MAX_VALUE_BYTES,
  type NewRecord,
  OffsetOutOfRange,
} from '../port';

export interface KafkaBrokerOptions extends KafkaConnection {
  /** Copies of each partition of a topic that Lumio creates. Default 1. */
  replication?: number;
  /** Warns of topics with fewer copies than production needs. Default false. */
  production?: boolean;
  log?: Logger;
  metrics?: Metrics;
  /** Milliseconds within which a publish is tried. Default 4,000: vendors wait 5 s for the answer to a webhook. */
  publish_timeout_ms?: number;
  /** Timeout of the first connection; brokers that have just started answer late. Default 60,000. */
  start_timeout_ms?: number;
  times?: Partial<KafkaConsumerTimes>;
}

const PUBLISH_TIMEOUT_MS = 4_000;
const START_TIMEOUT_MS = 60_000;

/**
 * Kafka behind the broker port, on kafkajs. Its `id` is the cluster's: `kafka:<cluster id>`. Partitions are chosen as
 * Kafka's own clients choose them; offsets live in the caller's checkpoint, and what the group stores is for lag tools.
 * @throws Error with one line when no broker answers within `start_timeout_ms`, or refuses us
 */
export async function createKafkaBroker(options: KafkaBrokerOptions): Promise<Broker> {
  const client = new KafkaClient(options, options.log);
  try {
    const cluster_id = await client.clusterId(options.start_timeout_ms ?? START_TIMEOUT_MS);
    return new KafkaBroker(`kafka:${cluster_id}`, client, options);
  } catch (error) {
    await client.close();
    throw new Error(`kafka at ${client.config.brokers.join(', ')} cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

class KafkaBroker implements Broker {
  private readonly publishers = new PerTopic((topic) => this.open(topic));
  private readonly consumers = new ActiveSet<Consumer>();
  private readonly reader: KafkaReader;
  private readonly replaced;
  private readonly restarts;
  private closed = false;

  constructor(
    readonly id: string,
    private readonly client: KafkaClient,
    private readonly options: KafkaBrokerOptions,
  ) {
    this.reader = new KafkaReader(client);
    this.replaced = options.metrics?.counter(
      'lumio_kafka_producers_replaced_total',
      'Producers thrown away after a failed send',
      ['topic'],
    );
    this.restarts = options.metrics?.counter(
      'lumio_kafka_consumer_restarts_total',
      'Consumers that crashed or stalled and were replaced',
      ['topic', 'group', 'reason'],
    );
  }

  async ensureTopics(
    topics: readonly string[],
    partitions: number,
    { limited = false }: { limited?: boolean } = {},
  ): Promise<void> {
    const present = new Set(await this.client.ask('listing topics', (admin) => admin.listTopics()));
    if (!limited) {
      await refuseLimited(
        this.client,
        topics.filter((topic) => present.has(topic)),
      );
    }
    for (const topic of topics) if (!present.has(topic)) await this.makeTopic(topic, partitions);
    const { log, production = false } = this.options;
    if (!limited) await warnOfWeakTopics(this.client, topics, { log, production });
  }

  async publish(topic: string, records: readonly NewRecord[]): Promise<Ends> {
    if (this.closed) throw new Error('the broker is closed');
    if (records.length === 0) return new Map();
    // Two calls in a row must keep their order: no await for a known topic, one shared wait for one that is being
    // looked up.
    const publisher = this.publishers.get(topic);
    try {
      return await (publisher instanceof KafkaPublisher
        ? publisher.publish(records)
        : (await publisher).publish(records));
    } catch (error) {
      throw error instanceof EngineUnavailable || !isPassingAtKafka(error)
        ? error
        : new EngineUnavailable('kafka', error);
    }
  }

  consume(options: ConsumeOptions): Consumer {
    if (this.closed) throw new Error('the broker is closed');
    const times = { ...CONSUMER_TIMES, ...this.options.times };
    const deps = { client: this.client, log: this.options.log, times, restarts: this.restarts };
    return this.consumers.add(new KafkaConsumer(options, deps));
  }

  async *read(topic: string, partition: number, from: number, to?: number): AsyncIterable<BrokerRecord[]> {
    const bounds = (await this.client.bounds(topic)).get(partition);
    if (!bounds) throw new Error(`there is no partition ${partition} of ${topic}`);
    const end = Math.min(to ?? bounds.next, bounds.next);
    if (from < bounds.earliest) throw new OffsetOutOfRange(topic, partition, from, bounds);
    let ahead: Promise<Page> | undefined = from < end ? this.reader.page(topic, partition, from) : undefined;
    while (ahead) {
      const { records, next }: Page = await ahead;
      // The next page is read while the caller works on this one.
      ahead = next < end ? this.reader.page(topic, partition, next) : undefined;
      ahead?.catch(() => undefined);
      const wanted = next > end ? records.filter(({ offset }) => offset < end) : records;
      if (wanted.length > 0) yield wanted;
    }
  }

  bounds(topic: string): Promise<Map<number, Bounds>> {
    return this.client.bounds(topic);
  }

  async trim(topic: string, partition: number, before: number): Promise<void> {
    const bounds = (await this.client.bounds(topic)).get(partition);
    if (!bounds) throw new Error(`there is no partition ${partition} of ${topic}`);
    const offset = Math.min(before, bounds.next);
    if (offset <= bounds.earliest) return;
    await this.client.ask(`trimming ${topic}/${partition}`, (admin) =>
      admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] }),
    );
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.consumers.stop();
    await Promise.all([...this.publishers.values()].map((publisher) => publisher.close()));
    await Promise.all([this.reader.close(), this.client.close()]);
  }

  private async makeTopic(topic: string, partitions: number): Promise<void> {
    const { replication = 1 } = this.options;
    const settings = {
      // The log of record: kept for ever, until an archiver has moved old records and trims.
      'cleanup.policy': 'delete',
      'retention.ms': '-1',
      'retention.bytes': '-1',
      // One send holds up to 2 MiB of records, and never less than one record.
      'max.message.bytes': String(MAX_VALUE_BYTES + 1024 * 1024),
      // Two copies before an acknowledgement where one broker of three may be missing.
      'min.insync.replicas': String(Math.max(1, Math.min(2, replication - 1))),
      'unclean.leader.election.enable': 'false',
      'message.timestamp.type': 'LogAppendTime',
    };
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
    try {
      await this.client.ask(`making ${topic}`, (admin) =>
        admin.createTopics({
          topics: [{ topic, numPartitions: partitions, replicationFactor: replication, configEntries }],
          waitForLeaders: true,
          timeout: 10_000,
        }),
      );
    } catch (error) {
      if (typeOf(error) !== 'TOPIC_ALREADY_EXISTS') throw error;
    }
    // A try without an answer may have created the topic a moment ago, and not every broker knows the topic yet.
    await retry(() => this.client.partitions(topic), {
      first_ms: 50,
      most_ms: 1_000,
      within_ms: 15_000,
      passing: (error) => error instanceof NoSuchTopic,
    });
  }

  private async open(topic: string): Promise<KafkaPublisher> {
    return new KafkaPublisher({
      client: this.client,
      topic,
      partitions: await this.client.partitions(topic),
      timeout_ms: this.options.publish_timeout_ms ?? PUBLISH_TIMEOUT_MS,
      log: this.options.log,
      onReplaced: () => this.replaced?.inc(1, { topic }),
    });
  }
}
