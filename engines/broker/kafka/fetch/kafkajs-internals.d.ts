/**
 * Parts of kafkajs 2.2.4 (kept at exactly that version) that fetching without its consumer needs; it publishes no types
 * for them.
 */
declare module 'kafkajs/src/cluster' {
  import type { ISocketFactory, Logger, SASLOptions } from 'kafkajs';
  import type { ConnectionOptions } from 'node:tls';

  interface Request {
    apiKey: number;
    apiVersion: number;
    apiName: string;
    encode(): Promise<unknown>;
  }
  interface Response<D, T> {
    /** Any answer may ask its client to wait before the next request. */
    decode(payload: Buffer): Promise<D & { clientSideThrottleTime: number }>;
    parse(decoded: D): Promise<T>;
  }
  interface Node {
    connectionPool: {
      getConnection(index: number): Promise<unknown>;
      send<D, T>(protocol: { request: Request; response: Response<D, T> }): Promise<T>;
    };
    disconnect(): Promise<void>;
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
    refreshMetadata(): Promise<void>;
    refreshMetadataIfNecessary(): Promise<void>;
    findLeaderForPartitions(topic: string, partitions: number[]): Record<string, number[]>;
    findBroker(which: { nodeId: string }): Promise<Node>;
  }
  export = Cluster;
}

declare module 'kafkajs/src/network/requestQueue' {
  class RequestQueue {
    /** Requests that wait for a throttle to pass, or for others to be answered. */
    pending: readonly unknown[];
    scheduleCheckPendingRequests(): void;
  }
  export = RequestQueue;
}

declare module 'kafkajs/src/protocol/requests/fetch/v11/request' {
  function request(fetch: {
    replicaId: number;
    isolationLevel: number;
    maxWaitTime: number;
    minBytes: number;
    maxBytes: number;
    topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[];
  }): { apiKey: number; apiVersion: number; apiName: string; encode(): Promise<unknown> };
  export = request;
}

declare module 'kafkajs/src/protocol/decoder' {
  class Decoder {
    constructor(bytes: Buffer);
  }
  export = Decoder;
}

declare module 'kafkajs/src/protocol/error' {
  /** With the name of the code as its `type`. */
  export function createErrorFromCode(code: number): Error & { type: string };
}

declare module 'kafkajs/src/protocol/requests/fetch/v4/decodeMessages' {
  import type { KafkaMessage } from 'kafkajs';
  import type Decoder from 'kafkajs/src/protocol/decoder';
  /** Of bytes that begin with their length. */
  function decodeMessages(decoder: Decoder): Promise<KafkaMessage[]>;
  export = decodeMessages;
}

declare module 'kafkajs/src/consumer/batch' {
  import type { KafkaMessage } from 'kafkajs';
  /** Leaves out records before the offset asked for, control records, and those of transactions that were given up. */
  class Batch {
    constructor(
      topic: string,
      fetched_offset: string,
      partition: {
        partition: number;
        highWatermark: string;
        abortedTransactions: { producerId: string; firstOffset: string }[];
        messages: KafkaMessage[];
      },
    );
    messages: KafkaMessage[];
  }
  export = Batch;
}
