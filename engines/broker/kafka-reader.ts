import Cluster from 'kafkajs/src/cluster';
import Batch from 'kafkajs/src/consumer/batch';
import {
  CONNECTION_TIMEOUT_MS,
  isPassing,
  type KafkaClient,
  REQUEST_TIMEOUT_MS,
  RETRY,
  sleep,
  within,
} from './kafka-client';
import { toRecords } from './kafka-records';
import { type BrokerRecord, OffsetOutOfRange } from './port';

const PAGE_BYTES = 4 * 1024 * 1024;
const READ_COMMITTED = 1;
/** How long a page is tried before the reader gives up. */
const PAGE_TIMEOUT_MS = 30_000;
const METADATA_AGE_MS = 300_000;

export interface Page {
  records: BrokerRecord[];
  /** Offset after the page: beyond its last record, or beyond what is no record (markers of a transaction). */
  next: number;
}

/**
 * Reads ranges of a partition straight from its leader. kafkajs offers reading to members of a group only; a group made for one read would
 * wait for its first rebalance (3 s by default), need rights on group names that nobody knows beforehand, and stay behind.
 */
export class KafkaReader {
  private cluster: Cluster | undefined;
  private closed = false;

  constructor(private readonly client: KafkaClient) {}

  /** @throws OffsetOutOfRange when `from` is not in the log */
  async page(topic: string, partition: number, from: number): Promise<Page> {
    const give_up_at = Date.now() + PAGE_TIMEOUT_MS;
    for (let pause_ms = 20; ; pause_ms = Math.min(pause_ms * 2, 1_000)) {
      const cluster = (this.cluster ??= this.open());
      try {
        const page = await within(
          fetch(cluster, topic, partition, from),
          REQUEST_TIMEOUT_MS,
          `reading ${topic}/${partition}`,
        );
        if (page.next > from) return page;
        if (Date.now() > give_up_at) throw new Error(`${topic}/${partition}: nothing comes at offset ${from}`);
      } catch (error) {
        if ((error as Error).name === 'KafkaJSOffsetOutOfRange') {
          const bounds = (await this.client.bounds(topic)).get(partition)!;
          // A leader that has just taken over may not know its end yet.
          if (from < bounds.earliest || from > bounds.next) throw new OffsetOutOfRange(topic, partition, from, bounds);
        } else if (!isPassing(error)) throw error;
        this.discard(cluster);
        if (this.closed || Date.now() + pause_ms > give_up_at) throw error;
      }
      await sleep(pause_ms);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.cluster?.disconnect().catch(() => undefined);
  }

  private open(): Cluster {
    const { kafka, config } = this.client;
    return new Cluster({
      logger: kafka.logger(),
      socketFactory: config.socketFactory!,
      brokers: config.brokers,
      ssl: config.ssl,
      sasl: config.sasl as never,
      clientId: config.clientId,
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      authenticationTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      enforceRequestTimeout: true,
      metadataMaxAge: METADATA_AGE_MS,
      allowAutoTopicCreation: false,
      maxInFlightRequests: null,
      isolationLevel: READ_COMMITTED,
      retry: RETRY,
    });
  }

  private discard(cluster: Cluster): void {
    if (this.cluster === cluster) this.cluster = undefined;
    cluster.disconnect().catch(() => undefined);
  }
}

async function fetch(cluster: Cluster, topic: string, partition: number, from: number): Promise<Page> {
  await cluster.connect();
  await cluster.addMultipleTargetTopics([topic]);
  await cluster.refreshMetadataIfNecessary();
  const [leader] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]));
  if (leader === undefined) throw new Error(`there is no partition ${partition} of ${topic}`);
  const node = await cluster.findBroker({ nodeId: leader });
  const { responses } = await node.fetch({
    replicaId: -1,
    isolationLevel: READ_COMMITTED,
    maxWaitTime: 100,
    minBytes: 1,
    maxBytes: PAGE_BYTES,
    topics: [{ topic, partitions: [{ partition, fetchOffset: String(from), maxBytes: PAGE_BYTES }] }],
  });
  const fetched = responses[0]?.partitions[0];
  if (!fetched || fetched.messages.length === 0) return { records: [], next: from };
  const batch = new Batch(topic, String(from), fetched);
  const records = toRecords(topic, partition, batch.messages);
  return { records, next: Math.max(Number(batch.lastOffset()) + 1, from + 1) };
}
