import { v7 as uuid } from 'uuid';
import type { Blobs } from '../../engines/blobs/port';
import type { Broker, BrokerRecord } from '../../engines/broker/port';
import { type HeldLock, LockLost, LOCKS, LockTaken } from '../../engines/locks/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { Database } from '../../engines/postgres/port';
import { encodeSegment, SEGMENT_CONTENT_TYPE } from './format';
import { readSegment } from './reader';
import { archiveKeyPart, archivePrefixOf, insertSegment, type Segment } from './segments';
import { DOMAIN_EVENTS } from '../../domain/common/records';
import type { Projection } from '../../kernel/projection';

export interface ArchiverDeps {
  db: Database;
  broker: Broker;
  blobs: Blobs;
  projections: readonly Projection[];
  topics: readonly string[];
  log: Logger;
  metrics: Metrics;
  /** Minimum age of archived records since their append, milliseconds. */
  after_ms: number;
  /** Whether records that are archived and applied by every projection are removed from the topic. */
  trim: boolean;
  /** Default 100,000 records or 32 MiB, whichever comes first. */
  segment_records?: number;
  segment_bytes?: number;
  /** A partial segment is archived when its first record is this much older than `after_ms`. Default one day. */
  linger_ms?: number;
  onProgress?: (archived: number) => void;
}

export interface Archived {
  segments: number;
  records: number;
  /** Records not archived: younger than `after_ms`. */
  young: number;
  /** Records not archived: old enough but too few for a segment; they wait up to `linger_ms` for others. */
  waiting: number;
  /**
   * Archived records that stay in the topics, by reason: `trim is off`, `a backup runs`, or the projection that has not
   * applied them.
   */
  kept: ReadonlyMap<string, number>;
}

/** Reason for keeping archived records when trimming is off. */
export const TRIM_OFF = 'trim is off';
/** Reason during a backup, which copies the log after its snapshot, up to the offsets of the snapshot. */
export const BACKUP_RUNS = 'a backup runs';

/**
 * Moves old records of the topics into the blob store (design §6): uploads segment and manifest, reads the segment back
 * and compares it, inserts its row, and only then trims; so a crash at any point costs at most an unreferenced blob.
 * Records are copied as they are. Nothing is trimmed beyond the slowest checkpoint on the topic.
 */
export function createArchiver(deps: ArchiverDeps): { run(): Promise<Archived> } {
  const {
    db,
    broker,
    blobs,
    log,
    segment_records = 100_000,
    segment_bytes = 32 * 1024 * 1024,
    linger_ms = 86_400_000,
  } = deps;
  const records_total = deps.metrics.counter('lumio_archive_records_total', 'Records moved to the archive', ['topic']);
  const segments_total = deps.metrics.counter('lumio_archive_segments_total', 'Segments written to the archive', [
    'topic',
  ]);

  async function archivePartition(
    lock: HeldLock,
    topic: string,
    partition: number,
    earliest: number,
    next: number,
  ): Promise<Omit<Archived, 'kept'>> {
    const archived = { segments: 0, records: 0, young: 0, waiting: 0 };
    let from = await archivedUpTo(topic, partition);
    if (from < earliest) {
      if (from > 0)
        log.error({ topic, partition, from, to: earliest }, 'records left the topic before they were archived');
      from = earliest;
    }
    const old = Date.now() - deps.after_ms;
    let held: BrokerRecord[] = [];
    let bytes = 0;
    const flush = async (to: number) => {
      const segment = await store(lock, topic, partition, from, to, held);
      archived.segments += 1;
      archived.records += segment.records;
      from = to;
      held = [];
      bytes = 0;
      deps.onProgress?.(segment.records);
    };
    reading: for await (const records of broker.read(topic, partition, from, next)) {
      for (const record of records) {
        if (Date.parse(record.appended_at) > old) {
          archived.young = next - record.offset;
          break reading;
        }
        held.push(record);
        bytes += record.value.length;
        if (held.length >= segment_records || bytes >= segment_bytes) await flush(record.offset + 1);
      }
    }
    const first = held[0];
    if (first && Date.parse(first.appended_at) <= old - linger_ms) await flush(held[held.length - 1]!.offset + 1);
    archived.waiting = held.length;
    records_total.inc(archived.records, { topic });
    segments_total.inc(archived.segments, { topic });
    return archived;
  }

  async function archivedUpTo(topic: string, partition: number): Promise<number> {
    const [row] = await db.query<{ upto: number }>(
      `select coalesce(max(to_offset), 0) as upto from archive_segments where engine = $1 and topic = $2
         and partition = $3`,
      [broker.id, topic, partition],
    );
    return row!.upto;
  }

  async function store(
    lock: HeldLock,
    topic: string,
    partition: number,
    from: number,
    to: number,
    held: BrokerRecord[],
  ): Promise<Segment> {
    // A unique name, so that no blob of an earlier log with this name is overwritten.
    const place = `${archiveKeyPart(topic)}/${pad(partition, 4)}/${pad(from)}-${pad(to)}-${uuid()}`;
    const name = `${archivePrefixOf(broker.id)}${place}`;
    const blob_key = `${name}.avro`;
    const { sha256, size_bytes } = await blobs.put(blob_key, encodeSegment(held), SEGMENT_CONTENT_TYPE);
    const segment: Segment = {
      engine: broker.id,
      topic,
      partition,
      from_offset: from,
      to_offset: to,
      records: held.length,
      size_bytes,
      sha256,
      blob_key,
      first_appended_at: held[0]!.appended_at,
      last_appended_at: held[held.length - 1]!.appended_at,
    };
    await verify(segment, held);
    // Stores the row's content with each segment, so that the archive is readable without the database.
    await blobs.put(
      `${name}.json`,
      Buffer.from(`${JSON.stringify({ format: 1, ...segment }, null, 2)}\n`),
      'application/json',
    );
    // A process that has lost the lock may run next to another archiver, which has begun segments from the same
    // offsets.
    await db.transaction(async (tx) => {
      if (!(await lock.stillHeld(tx))) throw new LockLost(lock.signal.reason);
      await insertSegment(tx, segment);
    });
    log.info({ topic, partition, from, to, size_bytes }, 'archived a segment');
    return segment;
  }

  /** Reads the segment back from the store and compares each record. */
  async function verify(segment: Segment, held: readonly BrokerRecord[]): Promise<void> {
    let at = 0;
    for await (const records of readSegment(blobs, segment)) {
      for (const record of records) {
        const put = held[at]!;
        if (record.offset !== put.offset || record.key !== put.key || !record.value.equals(put.value)) {
          throw new Error(
            `archive segment ${segment.blob_key}: read back, the record at offset ${put.offset} is another one`,
          );
        }
        at += 1;
      }
    }
  }

  /**
   * Offset up to which the topic may be trimmed: archived, and applied by every projection that reads it, of this
   * release or another. `held_by` is the slowest projection when it is behind the archive.
   */
  async function trimmable(topic: string, partition: number): Promise<{ before: number; held_by: string }> {
    const upto = await archivedUpTo(topic, partition);
    // Projections of domain events read the event store, and their checkpoints are positions there.
    if (topic === DOMAIN_EVENTS) return { before: upto, held_by: '' };
    const rows = await db.query<{ projection: string; engine: string; position: string }>(
      'select projection, engine, position from checkpoints where source = $1 and partition = $2',
      [topic, partition],
    );
    const at = new Map(rows.map((row) => [row.projection, row.engine === broker.id ? Number(row.position) : 0]));
    for (const { name, from } of deps.projections)
      if (from.kind === 'topic' && from.topic === topic && !at.has(name)) at.set(name, 0);
    const [[held_by, slowest] = ['', upto]] = [...at].sort(([, a], [, b]) => a - b);
    return { before: Math.min(upto, slowest), held_by };
  }

  /** Trims the topic; returns the number of archived records that stay, and the reason. */
  async function trim(topic: string, partition: number, earliest: number): Promise<[string, number]> {
    const upto = await archivedUpTo(topic, partition);
    if (!deps.trim) return [TRIM_OFF, Math.max(0, upto - earliest)];
    if (await backupRuns(db)) return [BACKUP_RUNS, Math.max(0, upto - earliest)];
    const { before, held_by } = await trimmable(topic, partition);
    if (before > earliest) await broker.trim(topic, partition, before);
    return [held_by, Math.max(0, upto - Math.max(before, earliest))];
  }

  return {
    run: () =>
      alone(db, async (lock) => {
        const kept = new Map<string, number>();
        const total = { segments: 0, records: 0, young: 0, waiting: 0, kept };
        for (const topic of deps.topics) {
          for (const [partition, { earliest, next }] of await broker.bounds(topic)) {
            lock.signal.throwIfAborted();
            const { segments, records, young, waiting } = await archivePartition(
              lock,
              topic,
              partition,
              earliest,
              next,
            );
            total.segments += segments;
            total.records += records;
            total.young += young;
            total.waiting += waiting;
            lock.signal.throwIfAborted();
            const [why, stay] = await trim(topic, partition, earliest);
            if (stay > 0) kept.set(why, (kept.get(why) ?? 0) + stay);
          }
        }
        return total;
      }),
  };
}

/** Whether a backup is copying tables of this database. */
async function backupRuns(db: Database): Promise<boolean> {
  const [lock] = await db.query(
    `select exists (select from pg_locks where locktype = 'advisory' and objsubid = 1 and objid = $1
       and database = (select oid from pg_database where datname = current_database())) as held`,
    [LOCKS.backup],
  );
  return lock!.held as boolean;
}

/**
 * Runs one archiver at a time, even next to a process that has lost its lease. The lock ends with the process in any
 * case.
 */
async function alone<T>(db: Database, work: (lock: HeldLock) => Promise<T>): Promise<T> {
  try {
    return await db.hold(LOCKS.archiver, work);
  } catch (error) {
    if (error instanceof LockTaken) throw new Error('another process is archiving already', { cause: error });
    throw error;
  }
}

const pad = (n: number, digits = 16) => String(n).padStart(digits, '0');
