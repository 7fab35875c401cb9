import type { Queryable } from '../../engines/postgres/port';

/** A segment of a topic partition in the blob store. */
export interface Segment {
  engine: string;
  topic: string;
  partition: number;
  from_offset: number;
  /** Exclusive. */
  to_offset: number;
  records: number;
  size_bytes: number;
  /** Hex digest of the blob. */
  sha256: string;
  blob_key: string;
  first_appended_at: string;
  last_appended_at: string;
}

/** Prefix of the archiver's blobs. */
export const ARCHIVE_PREFIX = 'archive/';

/** Prefix of the segments of one log. */
export const archivePrefixOf = (engine: string): string => `${ARCHIVE_PREFIX}${archiveKeyPart(engine)}/`;

/** Converts a text to one part of a blob's key. */
export const archiveKeyPart = (text: string): string => text.replace(/[^A-Za-z0-9._-]/g, '-');

/** Segments of this log that overlap the range from `from` to `to`, in order. */
export function findSegments(
  db: Queryable,
  engine: string,
  topic: string,
  partition: number,
  from: number,
  to: number,
): Promise<Segment[]> {
  return db.query<Segment>(
    `select engine, topic, partition, from_offset, to_offset, records, size_bytes, sha256, blob_key,
       first_appended_at, last_appended_at
     from archive_segments
     where engine = $1 and topic = $2 and partition = $3 and to_offset > $4 and from_offset < $5
     order by from_offset`,
    [engine, topic, partition, from, to],
  );
}

/** Stores a segment's row; replaces a shorter segment from the same offset. False when the row exists already. */
export async function insertSegment(db: Queryable, segment: Segment): Promise<boolean> {
  const changed = await db.query(
    `insert into archive_segments as s (engine, topic, partition, from_offset, to_offset, records, size_bytes, sha256,
       blob_key, first_appended_at, last_appended_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (engine, topic, partition, from_offset) do update
       set (to_offset, records, size_bytes, sha256, blob_key, first_appended_at, last_appended_at) =
         (excluded.to_offset, excluded.records, excluded.size_bytes, excluded.sha256, excluded.blob_key, excluded.first_appended_at, excluded.last_appended_at)
       where excluded.to_offset > s.to_offset
     returning 1 as one`,
    [
      segment.engine,
      segment.topic,
      segment.partition,
      segment.from_offset,
      segment.to_offset,
      segment.records,
      segment.size_bytes,
      segment.sha256,
      segment.blob_key,
      segment.first_appended_at,
      segment.last_appended_at,
    ],
  );
  return changed.length > 0;
}
