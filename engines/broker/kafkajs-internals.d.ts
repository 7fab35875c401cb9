/** The two parts of kafkajs 2.2.4 (kept at exactly that version) that reading without a consumer group needs; it publishes no types for them. */
declare module 'kafkajs/src/cluster' {
  import type { ISocketFactory, KafkaMessage, Logger, SASLOptions } from 'kafkajs';
  import type { ConnectionOptions } from 'node:tls';

  interface FetchedPartition {
    partition: number;
    highWatermark: string;
    messages: KafkaMessage[];
  }
  interface Node {
    fetch(request: {
      replicaId: number;
      isolationLevel: number;
      maxWaitTime: number;
      minBytes: number;
      maxBytes: number;
      topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[];
    }): Promise<{ responses: { topicName: string; partitions: FetchedPartition[] }[] }>;
  }
  class Cluster {
    constructor(options: {
      logger: Logger;
      socketFactory: ISocketFactory;
      brokers: string[];
      ssl: ConnectionOptions | undefined;
      sasl: SASLOptions | undefined;
      clientId: string;
      connectionTimeout: number;
      requestTimeout: number;
      enforceRequestTimeout: boolean;
      authenticationTimeout: number;
      metadataMaxAge: number;
      allowAutoTopicCreation: boolean;
      maxInFlightRequests: number | null;
      isolationLevel: number;
      retry: { retries: number; initialRetryTime: number; maxRetryTime: number };
    });
    connect(): Promise<void>;
    disconnect(): Promise<void>;
    addMultipleTargetTopics(topics: string[]): Promise<void>;
    refreshMetadataIfNecessary(): Promise<void>;
    findLeaderForPartitions(topic: string, partitions: number[]): Record<string, number[]>;
    findBroker(which: { nodeId: string }): Promise<Node>;
  }
  export = Cluster;
}

declare module 'kafkajs/src/consumer/batch' {
  import type { KafkaMessage } from 'kafkajs';
  /** Leaves out records before the offset asked for, control records, and those of aborted transactions. */
  class Batch {
    constructor(topic: string, fetched_offset: string, partition: { partition: number; messages: KafkaMessage[] });
    messages: KafkaMessage[];
    rawMessages: KafkaMessage[];
    lastOffset(): string;
  }
  export = Batch;
}
