import Cluster from 'kafkajs/src/cluster';
import fetchRequest from 'kafkajs/src/protocol/requests/fetch/v11/request';
import { CONNECTION_TIMEOUT_MS, type KafkaClient, REQUEST_TIMEOUT_MS, RETRY } from '../client';
import { decodeFetchResponse, type FetchedPartition } from './records';

const READ_COMMITTED = 1;
const METADATA_AGE_MS = 300_000;
/** Number of a node's connection for fetches; all other requests use another one. */
const FETCH_CONNECTION = 1;

/** Kafka's name for the leader of a partition that has none at this moment. */
export const NOBODY = '-1';

export interface FetchLimits {
  /** Longest wait of the leader for a first record. */
  wait_ms: number;
  /** Bound of the whole answer; the first batch of a partition is complete, however large. */
  max_bytes: number;
  partition_bytes: number;
}

/**
 * Fetches from the leaders of partitions, over connections of its own. The consumer of kafkajs is not used, because it
 * decodes each record into a dozen objects, sleeps a whole fetch wait when an assignment begins paused, and skips to
 * another offset when an offset is out of range.
 */
export class KafkaFetcher {
  private readonly cluster: Cluster;
  private readonly opening = new Map<string, Promise<unknown>>();

  constructor({ kafka, config }: KafkaClient) {
    this.cluster = new Cluster({
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

  /** Partitions by their leader in the cached metadata; {@link NOBODY} stands for an unknown leader. */
  async leaders(topic: string, partitions: readonly number[]): Promise<Map<string, number[]>> {
    await this.cluster.connect();
    await this.cluster.addMultipleTargetTopics([topic]);
    await this.cluster.refreshMetadataIfNecessary();
    const leaders = new Map(Object.entries(this.cluster.findLeaderForPartitions(topic, [...partitions])));
    const known = new Set([...leaders.values()].flat());
    const unknown = partitions.filter((partition) => !known.has(partition));
    if (unknown.length > 0) leaders.set(NOBODY, [...(leaders.get(NOBODY) ?? []), ...unknown]);
    return leaders;
  }

  /** Fetches the leaders of all partitions again. */
  refresh(): Promise<void> {
    return this.cluster.refreshMetadata();
  }

  /** Fetches from one leader. Refusals of single partitions are in the answer. */
  async fetch(
    node: string,
    topic: string,
    places: readonly (readonly [partition: number, offset: number])[],
    { wait_ms, max_bytes, partition_bytes }: FetchLimits,
  ): Promise<FetchedPartition[]> {
    const broker = await this.cluster.findBroker({ nodeId: node });
    const request = fetchRequest({
      replicaId: -1,
      isolationLevel: READ_COMMITTED,
      maxWaitTime: wait_ms,
      minBytes: 1,
      maxBytes: max_bytes,
      topics: [
        {
          topic,
          partitions: places.map(([partition, offset]) => ({
            partition,
            fetchOffset: String(offset),
            maxBytes: partition_bytes,
          })),
        },
      ],
    });
    try {
      await this.open(node, broker);
      return await broker.connectionPool.send({ request, response: RESPONSE });
    } catch (error) {
      // Disconnects after any failure, so that no later request receives the late answer.
      await broker.disconnect();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.cluster.disconnect();
  }

  /** Shares the connecting, because two concurrent requests would connect twice and leak one connection. */
  private async open(node: string, { connectionPool }: Awaited<ReturnType<Cluster['findBroker']>>): Promise<void> {
    let opening = this.opening.get(node);
    if (!opening) {
      opening = connectionPool.getConnection(FETCH_CONNECTION).finally(() => this.opening.delete(node));
      this.opening.set(node, opening);
    }
    await opening;
  }
}

const RESPONSE = {
  decode: async (payload: Buffer) => ({ clientSideThrottleTime: payload.readInt32BE(0), payload }),
  parse: async ({ payload }: { payload: Buffer }) => decodeFetchResponse(payload),
};
