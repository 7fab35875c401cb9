import type pg from 'pg';
import { isPassing } from '../postgres/errors';
import { partitionOf } from './partitioner';
import { instant, NO_HEADERS } from './packed';
import { type BrokerRecord, InvalidRecord, MAX_VALUE_BYTES, type NewRecord } from './port';

/** Bounds of one round trip; a publish that is larger by itself travels alone. */
const MAX_RECORDS = 4096;
const MAX_BYTES = 4 * 1024 * 1024;
/** Bytes that may wait for their turn. Beyond it publishes are refused at once: a queue without end would only hide that the database is behind. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

const PUBLISH =
  'select partition, first_offset, appended_micros from broker_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)';

export interface TopicInfo {
  topic: string;
  topic_id: number;
  partitions: number;
}

export interface PublishOptions {
  pool: pg.Pool;
  topic: TopicInfo;
  /** Milliseconds within which a group is tried; then its publishes reject. */
  timeout_ms: number;
  /** Told after each commit; `records` says what went where. */
  onPublished(records: () => Map<number, BrokerRecord[]>): void;
}

interface Pending {
  records: readonly EncodedRecord[];
  bytes: number;
  resolve(): void;
  reject(error: Error): void;
}

interface EncodedRecord {
  partition: number;
  key: Buffer;
  headers: Buffer | undefined;
  value: Buffer;
  record: NewRecord;
}

/** Where the records of one partition begin. */
interface Place {
  partition: number;
  first_offset: number;
  appended_micros: number;
}

/**
 * Collects the publishes of one process to one topic: those that arrive in one turn of the event loop, or while a group is on its way,
 * share one statement and one commit. One group is in flight at a time, so that a key's records keep their call order.
 */
export class PublishGroups {
  private queue: Pending[] = [];
  private waiting_bytes = 0;
  private running: Promise<void> | undefined;

  constructor(private readonly options: PublishOptions) {}

  /** @throws InvalidRecord before anything is sent */
  publish(records: readonly NewRecord[]): Promise<void> {
    const encoded = records.map((record) => encode(record, this.options.topic));
    let bytes = 0;
    for (const { key, headers, value } of encoded) bytes += key.length + (headers?.length ?? 0) + value.length;
    if (this.waiting_bytes > MAX_WAITING_BYTES) {
      throw new Error(`the log takes ${this.options.topic.topic} too slowly: ${this.waiting_bytes} bytes are waiting`);
    }
    this.waiting_bytes += bytes;
    return new Promise((resolve, reject) => {
      this.queue.push({ records: encoded, bytes, resolve, reject });
      this.running ??= new Promise<void>((started) => setImmediate(started)).then(() => this.run());
    });
  }

  /** Resolves when everything taken so far has its outcome. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    while (this.queue.length > 0) {
      const group = this.take();
      try {
        const places = await this.send(parameters(this.options.topic, group));
        this.options.onPublished(() => placed(this.options.topic.topic, places, group));
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error as Error);
      }
      for (const { bytes } of group) this.waiting_bytes -= bytes;
      // The callers just answered get their turn, so that what they publish next joins the next group.
      await new Promise<void>((resume) => setImmediate(resume));
    }
    this.running = undefined;
  }

  private take(): Pending[] {
    let taken = 0;
    let records = 0;
    let bytes = 0;
    for (const pending of this.queue) {
      records += pending.records.length;
      bytes += pending.bytes;
      if (taken > 0 && (records > MAX_RECORDS || bytes > MAX_BYTES)) break;
      taken += 1;
    }
    return this.queue.splice(0, taken);
  }

  /** A group whose fate is unknown is sent again: a double is deduplicated behind the log, a loss could not be mended. */
  private async send(values: unknown[]): Promise<Place[]> {
    const give_up_at = Date.now() + this.options.timeout_ms;
    for (let pause_ms = 20; ; pause_ms = Math.min(pause_ms * 2, 1000)) {
      try {
        const query_timeout = Math.max(1000, give_up_at - Date.now());
        const { rows } = await this.options.pool.query<Place>({
          name: 'broker-append',
          text: PUBLISH,
          values,
          query_timeout,
        } as pg.QueryConfig);
        return rows;
      } catch (error) {
        if (!isPassing(error) || Date.now() + pause_ms > give_up_at) throw error;
        await new Promise((resume) => setTimeout(resume, pause_ms * (0.5 + Math.random())));
      }
    }
  }
}

function encode(record: NewRecord, { topic, partitions }: TopicInfo): EncodedRecord {
  const { key, value, headers } = record;
  if (key.includes('\0')) throw new InvalidRecord(`a record key of ${topic} holds a NUL character`);
  if (value.length > MAX_VALUE_BYTES) {
    throw new InvalidRecord(`a record of ${topic} has ${value.length} bytes, the log takes ${MAX_VALUE_BYTES}`);
  }
  let has_headers = false;
  for (const _name in headers) {
    has_headers = true;
    break;
  }
  return {
    partition: partitionOf(key, partitions),
    key: Buffer.from(key),
    headers: has_headers ? Buffer.from(JSON.stringify(headers)) : undefined,
    value,
    record,
  };
}

/** The group's records as a reader of the log will see them, by partition. */
function placed(topic: string, places: readonly Place[], group: readonly Pending[]): Map<number, BrokerRecord[]> {
  const by_partition = new Map<number, BrokerRecord[]>();
  const runs = new Map<number, { offset: number; appended_at: string; records: BrokerRecord[] }>();
  for (const { partition, first_offset, appended_micros } of places) {
    const records: BrokerRecord[] = [];
    by_partition.set(partition, records);
    runs.set(partition, { offset: first_offset, appended_at: instant(appended_micros), records });
  }
  for (const pending of group) {
    for (const { partition, record } of pending.records) {
      const run = runs.get(partition)!;
      const { key, value, headers = NO_HEADERS, opened } = record;
      const { offset, appended_at } = run;
      run.records.push({ topic, partition, offset, key, value, headers, appended_at, opened });
      run.offset += 1;
    }
  }
  return by_partition;
}

/** The function's arguments: all bytes in one buffer, numbers as array literals, which cost less than the driver's own. */
function parameters({ topic_id, partitions }: TopicInfo, group: readonly Pending[]): unknown[] {
  let size = 0;
  for (const { bytes } of group) size += bytes;
  const data = Buffer.allocUnsafe(size);
  const counts = new Array<number>(partitions).fill(0);
  const partition: number[] = [];
  const rank: number[] = [];
  const start: number[] = [];
  const key: number[] = [];
  const headers: number[] = [];
  const value: number[] = [];
  let at = 0;
  for (const pending of group) {
    for (const record of pending.records) {
      partition.push(record.partition);
      rank.push(counts[record.partition]!);
      counts[record.partition]! += 1;
      start.push(at + 1);
      key.push(record.key.length);
      headers.push(record.headers?.length ?? 0);
      value.push(record.value.length);
      at += record.key.copy(data, at);
      if (record.headers) at += record.headers.copy(data, at);
      at += record.value.copy(data, at);
    }
  }
  const touched = counts.flatMap((count, index) => (count > 0 ? [index] : []));
  const numbers = (list: number[]) => `{${list.join(',')}}`;
  const lists = [partition, rank, start, key, headers, value, touched, touched.map((index) => counts[index]!)];
  return [topic_id, data, ...lists.map(numbers)];
}
