import type pg from 'pg';
import { retry, type Try } from '../../../lib/async/retry';
import { isPassing } from '../../../kernel/failures';
import { intArray } from '../../postgres/port';
import { partitionOf } from '../partitioner';
import { instant, NO_HEADERS } from './packed';
import type { BrokerRecord, Ends, NewRecord } from '../port';
import { assertStorable, type Publish, PublishQueue } from './publish-queue';

/** Bounds of one round trip; a publish that is larger by itself travels alone. */
const BOUNDS = { items: 4096, bytes: 4 * 1024 * 1024 };

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
  /** Called after each commit; `records` returns the stored records by partition. */
  onPublished(records: () => Map<number, BrokerRecord[]>): void;
}

interface EncodedRecord {
  partition: number;
  key: Buffer;
  headers: Buffer | undefined;
  value: Buffer;
  record: NewRecord;
}

/** First offset and time of the records of one partition. */
interface PublishedRange {
  partition: number;
  first_offset: number;
  appended_micros: number;
}

/** Publishes of one process to one topic: a group of them shares one statement and one commit. */
export class PublishGroups {
  private readonly queue: PublishQueue<EncodedRecord>;

  constructor(private readonly options: PublishOptions) {
    const { topic, onPublished } = options;
    this.queue = new PublishQueue({
      topic: topic.topic,
      bounds: BOUNDS,
      send: async (group) => {
        const places = await this.send(parameters(topic, group));
        onPublished(() => placed(topic.topic, places, group));
        return endsOf(places, group);
      },
    });
  }

  /** @throws InvalidRecord before anything is sent */
  publish(records: readonly NewRecord[]): Promise<Ends> {
    const encoded = records.map((record) => encode(record, this.options.topic));
    let bytes = 0;
    for (const { key, headers, value } of encoded) bytes += key.length + (headers?.length ?? 0) + value.length;
    return this.queue.add(encoded, bytes);
  }

  /** Resolves when everything taken so far has its outcome. */
  idle(): Promise<void> {
    return this.queue.idle();
  }

  /**
   * Sends a group again when its outcome is unknown: a duplicate is deduplicated behind the log, a loss would be final.
   */
  private async send(values: unknown[]): Promise<PublishedRange[]> {
    const { pool, timeout_ms } = this.options;
    const send = async ({ left_ms }: Try) => {
      const query_timeout = Math.max(1000, left_ms);
      const query = { name: 'broker-append', text: PUBLISH, values, query_timeout };
      return (await pool.query<PublishedRange>(query)).rows;
    };
    return retry(send, { first_ms: 20, most_ms: 1000, within_ms: timeout_ms, passing: isPassing });
  }
}

function encode(record: NewRecord, { topic, partitions }: TopicInfo): EncodedRecord {
  const { key, value, headers } = record;
  assertStorable(topic, record);
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

/** Ends of each publish of the group. */
function endsOf(places: readonly PublishedRange[], group: readonly Publish<EncodedRecord>[]): Ends[] {
  const next = new Map(places.map(({ partition, first_offset }) => [partition, first_offset]));
  return group.map(({ items }) => {
    const ends = new Map<number, number>();
    for (const { partition } of items) {
      const end = next.get(partition)! + 1;
      next.set(partition, end);
      ends.set(partition, end);
    }
    return ends;
  });
}

/** The group's records as a reader of the log will see them, by partition. */
function placed(
  topic: string,
  places: readonly PublishedRange[],
  group: readonly Publish<EncodedRecord>[],
): Map<number, BrokerRecord[]> {
  const by_partition = new Map<number, BrokerRecord[]>();
  const runs = new Map<number, { offset: number; appended_at: string; records: BrokerRecord[] }>();
  for (const { partition, first_offset, appended_micros } of places) {
    const records: BrokerRecord[] = [];
    by_partition.set(partition, records);
    runs.set(partition, { offset: first_offset, appended_at: instant(appended_micros), records });
  }
  for (const { items } of group) {
    for (const { partition, record } of items) {
      const run = runs.get(partition)!;
      const { key, value, headers = NO_HEADERS, opened } = record;
      const { offset, appended_at } = run;
      run.records.push({ topic, partition, offset, key, value, headers, appended_at, opened });
      run.offset += 1;
    }
  }
  return by_partition;
}

/** The function's arguments: all bytes in one buffer, numbers as the server keeps them. */
function parameters({ topic_id, partitions }: TopicInfo, group: readonly Publish<EncodedRecord>[]): unknown[] {
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
  for (const { items } of group) {
    for (const record of items) {
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
  const lists = [partition, rank, start, key, headers, value, touched, touched.map((index) => counts[index]!)];
  return [topic_id, data, ...lists.map(intArray)];
}
