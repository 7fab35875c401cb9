import type pg from 'pg';
import { type CopiedRow, copyOut } from '../../postgres/copy-out';
import { unpack } from './packed';
import { OffsetOutOfRange, type Bounds, type BrokerRecord } from '../port';
import type { TopicInfo } from './publish-groups';

const BOUNDS = 'select partition, earliest, next_offset from broker_partitions where topic_id = $1 order by partition';
const BALANCE = 'select partition, wanted, joined from broker_balance($1, $2, $3, $4, $5, $6)';
/** Milliseconds without an answer after which a connection is given up: a half-open link never answers. */
const QUERY_TIMEOUT_MS = 15_000;
/** Silence after which a member counts as dead. */
export const PATIENCE = '10 s';

export interface FetchRequest {
  /** Partition to the first offset to read. */
  from: ReadonlyMap<number, number>;
  /** Exclusive; default: the end of the log. */
  to?: number;
  max_records: number;
  max_bytes: number;
}

export interface Fetched {
  records: BrokerRecord[];
  /** Per partition with records: the offset after the last one. */
  next: Map<number, number>;
  /** True when the log held more than fitted. */
  more: boolean;
}

/** The statements of the embedded log, one function each. */
export class PostgresLog {
  private readonly topics = new Map<string, TopicInfo>();

  constructor(private readonly pool: pg.Pool) {}

  async ensureTopic(topic: string, partitions: number): Promise<void> {
    if (this.topics.has(topic)) return;
    await this.run('select broker_ensure_topic($1, $2)', [topic, partitions]);
  }

  /** @throws Error when there is no such topic */
  async topic(topic: string): Promise<TopicInfo> {
    const known = this.topics.get(topic);
    if (known) return known;
    const [found] = await this.run<TopicInfo>(
      'select topic, topic_id, partitions from broker_topics where topic = $1',
      [topic],
    );
    if (!found) throw new Error(`there is no topic ${topic}`);
    this.topics.set(topic, found);
    return found;
  }

  /** @throws OffsetOutOfRange */
  async fetch({ topic, topic_id }: TopicInfo, { from, to, max_records, max_bytes }: FetchRequest): Promise<Fetched> {
    const partitions = [...from.keys()];
    const places = [partitions, [...from.values()], partitions.map(() => to ?? Number.MAX_SAFE_INTEGER)];
    const lists = places.map((list) => `'${numbers(list)}'`).join(', ');
    const query = `select partition, earliest, next_offset, packed
      from broker_read(${topic_id}, ${lists}, ${max_records}, ${max_bytes})`;
    const fetched: Fetched = { records: [], next: new Map(), more: false };
    for (const row of (await copyOut(this.pool, query, QUERY_TIMEOUT_MS)).map(partitionRow)) {
      const first = from.get(row.partition)!;
      if (first < row.earliest || first > row.next_offset) {
        throw new OffsetOutOfRange(topic, row.partition, first, { earliest: row.earliest, next: row.next_offset });
      }
      if (row.packed === null) continue;
      unpack(topic, row.partition, row.packed, fetched.records);
      const next = fetched.records[fetched.records.length - 1]!.offset + 1;
      fetched.next.set(row.partition, next);
      fetched.more ||= next < Math.min(to ?? row.next_offset, row.next_offset);
    }
    return fetched;
  }

  async bounds({ topic_id }: TopicInfo): Promise<Map<number, Bounds>> {
    const rows = await this.run(BOUNDS, [topic_id], 'broker-bounds');
    return new Map(rows.map((row) => [row.partition as number, { earliest: row.earliest, next: row.next_offset }]));
  }

  /**
   * Commits the new bound first, so that readers get an error, then deletes in slices, so that publishes do not wait.
   */
  async trim({ topic_id }: TopicInfo, partition: number, before: number): Promise<void> {
    const bound = `update broker_partitions set earliest = greatest(earliest, least($3, next_offset))
      where topic_id = $1 and partition = $2 returning earliest`;
    const [moved] = await this.run<{ earliest: number }>(bound, [topic_id, partition, before]);
    if (!moved) return;
    const slice = `delete from broker_records where topic_id = $1 and partition = $2 and "offset" < $3 and "offset" < 10000 + (
      select min("offset") from broker_records where topic_id = $1 and partition = $2)`;
    for (let deleted = 1; deleted > 0;) {
      const result = await this.pool.query(slice, [topic_id, partition, moved.earliest]);
      deleted = result.rowCount ?? 0;
    }
  }

  /** Renews the member, releases `release`, and returns its leases with whether the member should keep them. */
  async balance(
    topic: TopicInfo,
    group: string,
    member: string,
    session_lock: number,
    release: number[],
  ): Promise<Balance> {
    const values = [topic.topic_id, group, member, session_lock, numbers(release), PATIENCE];
    const rows = await this.run<{ partition: number | null; wanted: boolean; joined: boolean }>(
      BALANCE,
      values,
      'broker-balance',
    );
    const leases = new Map<number, boolean>();
    for (const { partition, wanted } of rows) if (partition !== null) leases.set(partition, wanted);
    return { leases, joined: rows[0]!.joined };
  }

  async leave({ topic_id }: TopicInfo, group: string, member: string): Promise<void> {
    await this.run('select broker_leave($1, $2, $3)', [topic_id, group, member]);
  }

  private async run<R extends pg.QueryResultRow>(text: string, values: unknown[], name?: string): Promise<R[]> {
    const config = { text, values, query_timeout: QUERY_TIMEOUT_MS, ...(name ? { name } : {}) };
    return (await this.pool.query<R>(config as pg.QueryConfig)).rows;
  }
}

export interface Balance {
  /** Partitions leased to the member, and whether they are meant to stay with it. */
  leases: Map<number, boolean>;
  /** The group did not know the member until now. */
  joined: boolean;
}

const partitionRow = ([partition, earliest, next_offset, packed]: CopiedRow) => ({
  partition: partition!.readInt32BE(),
  earliest: Number(earliest!.readBigInt64BE()),
  next_offset: Number(next_offset!.readBigInt64BE()),
  packed: packed ?? null,
});

const numbers = (list: readonly number[]) => `{${list.join(',')}}`;
