/**
 * Record of a topic partition. Offsets are dense per partition on the embedded log and increasing on Kafka; both fit a
 * double.
 */
export interface BrokerRecord {
  topic: string;
  partition: number;
  offset: number;
  key: string;
  value: Buffer;
  headers: Readonly<Record<string, string>>;
  /** RFC 3339 UTC: when the broker took it. */
  appended_at: string;
  /** The value of {@link NewRecord.opened}, when this process wrote the record itself a moment ago. */
  opened?: unknown;
}

export interface NewRecord {
  /** Same key, same partition, same order. */
  key: string;
  value: Buffer;
  headers?: Readonly<Record<string, string>>;
  /**
   * Decoded content of `value`, so that a reader of the same process need not decode it where the engine hands records
   * over in memory. Never stored.
   */
  opened?: unknown;
}

/** Partition to the next offset to read. */
export type Offsets = Map<number, number>;

/** Ends of published records: partition to the offset after the last of them. */
export type Ends = ReadonlyMap<number, number>;

/** Records of one or several partitions, each partition's in offset order. */
export interface RecordBatch {
  topic: string;
  records: BrokerRecord[];
  /** Per partition in this batch: `from` is where reading began, `to` the next offset to read after it. */
  progress: Map<number, { from: number; to: number }>;
}

export interface ConsumeOptions {
  topic: string;
  /** Consumers of one group share the partitions between them. */
  group: string;
  /** Most records per batch. Default 1000. */
  max_records?: number;
  /**
   * Called at each assignment: returns the next offsets from the caller's own checkpoint. A missing partition starts at
   * its earliest record.
   */
  start(partitions: number[]): Promise<Offsets>;
  /**
   * Batches of one partition never overlap in time. A throw ends the consumer: `done` rejects with it, and nothing is
   * skipped.
   */
  onBatch(batch: RecordBatch): Promise<void>;
  /**
   * A hint, from engines that read ahead: this very list becomes the next batch's `records` unless the assignment
   * changes.
   */
  onAhead?(records: readonly BrokerRecord[]): void;
}

export interface Consumer {
  /**
   * Settles when the consumer has ended: resolves after `stop()`, rejects when `onBatch` or the engine failed for good.
   */
  readonly done: Promise<void>;
  /** Stops fetching and waits for the batch in hand. */
  stop(): Promise<void>;
}

export interface Bounds {
  /** Earliest offset still kept. */
  earliest: number;
  /** Offset that the next record will get. */
  next: number;
}

/** Most bytes of one record's value on every engine (Kafka topics are made with `max.message.bytes` above it). */
export const MAX_VALUE_BYTES = 2 * 1024 * 1024;

/**
 * The offset asked for is not in the log: trimmed away, or beyond the end (another log's offset). Nothing is skipped
 * silently.
 */
export class OffsetOutOfRange extends Error {
  constructor(
    readonly topic: string,
    readonly partition: number,
    readonly offset: number,
    readonly bounds: Bounds,
  ) {
    super(
      `${topic}/${partition}: offset ${offset} is outside the log, which holds ${bounds.earliest} to ${bounds.next}`,
    );
    this.name = 'OffsetOutOfRange';
  }
}

/** A record that no engine would take: too large, or a key that cannot be text. */
export class InvalidRecord extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidRecord';
  }
}

/** A partitioned log of records. Contract: test/contracts/broker.ts, held for every adapter. */
export interface Broker {
  /** Identity of this log; a checkpoint names it. */
  readonly id: string;
  /**
   * Creates missing topics with `partitions` each; never changes an existing one.
   * @throws Error in one line when an existing one drops records by itself, unless `limited` is true
   */
  ensureTopics(topics: readonly string[], partitions: number, options?: { limited?: boolean }): Promise<void>;
  /**
   * Durable (acks=all, fsync) when it resolves, with where the records lie; per key in call order. Rejects as a whole:
   * the caller retries, the effect is deduplicated behind it.
   */
  publish(topic: string, records: readonly NewRecord[]): Promise<Ends>;
  /** Whether readers of this process get the topic's records from memory; otherwise `opened` has no effect. */
  handsOver?(topic: string): boolean;
  consume(options: ConsumeOptions): Consumer;
  /**
   * Records of one partition from `from` (inclusive) up to `to` (exclusive; default: the end at the time of the call),
   * in batches.
   */
  read(topic: string, partition: number, from: number, to?: number): AsyncIterable<BrokerRecord[]>;
  bounds(topic: string): Promise<Map<number, Bounds>>;
  /** Drops records below `before`; only the archiver calls it, after the records are in the archive. */
  trim(topic: string, partition: number, before: number): Promise<void>;
  close(): Promise<void>;
}
