import type { Readable } from 'node:stream';
import type { Blobs } from '../../engines/blobs/port';
import type { Broker, BrokerRecord } from '../../engines/broker/port';
import type { Queryable } from '../../engines/postgres/port';
import { decodeSegment } from './format';
import { findSegments, type Segment } from './segments';
import { HistoryTruncated, type ReadArchived } from '../../projections/runtime/rebuild/source';

/** A segment's blob does not match its row. */
export class ArchiveDamaged extends Error {
  constructor(segment: Segment, why: string) {
    super(
      `archive segment ${segment.blob_key} (${segment.topic}/${segment.partition} from ${segment.from_offset}): ${why}`,
    );
    this.name = 'ArchiveDamaged';
  }
}

export interface ArchiveReaderDeps {
  db: Queryable;
  blobs: Pick<Blobs, 'get' | 'head'>;
  broker: Pick<Broker, 'id'>;
}

/**
 * Reads records that the archiver moved out of a topic. Each segment's checksum and number of records are checked
 * against its row. The segments must cover the whole range, which is checked before the first record is returned.
 * @throws HistoryGone, ArchiveDamaged
 */
export function createArchiveReader({ db, blobs, broker }: ArchiveReaderDeps): ReadArchived {
  return async function* readArchived(topic, partition, from, to) {
    const segments = await findSegments(db, broker.id, topic, partition, from, to);
    let covered = from;
    for (const segment of segments) {
      if (segment.from_offset > covered) break;
      covered = Math.max(covered, segment.to_offset);
    }
    if (covered < to) throw new HistoryTruncated(topic, partition, to);
    let next = from;
    for (const segment of segments) {
      for await (const records of readSegment(blobs, segment)) {
        const wanted = records.filter(({ offset }) => offset >= next && offset < to);
        if (wanted.length > 0) yield wanted;
      }
      next = Math.max(next, segment.to_offset);
      if (next >= to) return;
    }
  };
}

/** Reads all records of a segment and checks them against its row. */
export async function* readSegment(
  blobs: Pick<Blobs, 'get' | 'head'>,
  segment: Segment,
): AsyncGenerator<BrokerRecord[]> {
  const info = await blobs.head(segment.blob_key);
  if (!info) throw new ArchiveDamaged(segment, 'its blob is gone');
  if (info.sha256 !== segment.sha256) throw new ArchiveDamaged(segment, 'its blob is another one than was archived');
  const content = (await blobs.get(segment.blob_key)) as Readable;
  let count = 0;
  let last = segment.from_offset - 1;
  try {
    for await (const records of decodeSegment(content, segment.topic, segment.partition)) {
      for (const { offset } of records) {
        if (offset <= last || offset >= segment.to_offset) throw new Error(`offset ${offset} follows ${last}`);
        last = offset;
      }
      count += records.length;
      yield records;
    }
  } catch (error) {
    throw new ArchiveDamaged(segment, (error as Error).message);
  }
  if (count !== segment.records)
    throw new ArchiveDamaged(segment, `it holds ${count} records instead of ${segment.records}`);
}
