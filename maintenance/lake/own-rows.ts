import { ERASED_RAW } from '../../domain/common/records';
import type { PlainFiles } from '../../engines/blobs/port';
import type { Queryable } from '../../engines/postgres/port';
import type { ExportRow } from '../archive/files/columns';
import { type ReadFormat, readRows } from '../archive/files/decoder';

interface Place {
  topic: string;
  partition: number;
  from_offset: number;
  to_offset: number;
}

/**
 * Rows that a file of the lake has of records before `before`, which the log has dropped. Personal parts of erased
 * persons are emptied, with those of neighbouring records: places are known by blocks alone.
 */
export async function* ownRows(
  { db, store, engine, format }: { db: Queryable; store: PlainFiles; engine: string; format: ReadFormat },
  key: string,
  { topic, partition, from_offset }: Place,
  before: number,
): AsyncGenerator<ExportRow[]> {
  const erased = await db.query<{ first: number; next: number }>(
    `select from_offset as first, to_offset as next from lake_erasures
     where engine = $1 and topic = $2 and partition = $3 and to_offset > $4 and from_offset < $5`,
    [engine, topic, partition, from_offset, before],
  );
  const isErased = (offset: number) => erased.some(({ first, next }) => offset >= first && offset < next);
  const file = await store.open(key);
  if (file === undefined) return;
  try {
    for await (const rows of readRows(format, file)) {
      const dropped = rows.filter(({ offset }) => Number(offset) < before);
      if (dropped.length === 0) continue;
      yield dropped.map((row) => {
        const { raw } = row;
        const is_personal = raw !== undefined && isErased(Number(row['offset']));
        return { ...row, ...integers(row), ...(is_personal && { raw: ERASED_RAW }) };
      });
    }
  } finally {
    await file.close();
  }
}

/** Integers of files may be of a type that no JSON has. */
const integers = (row: ExportRow): ExportRow =>
  Object.fromEntries(
    Object.entries(row).flatMap(([name, value]) => (typeof value === 'bigint' ? [[name, Number(value)]] : [])),
  );

/** Deletes the places of erased persons whose files have all been written again. */
export const dropWrittenErasures = (db: Queryable): Promise<unknown> =>
  db.query(`
    delete from lake_erasures e where not exists (
      select from lake_files f where f.engine = e.engine and f.topic = e.topic and f.partition = e.partition
        and f.from_offset < e.to_offset and f.to_offset > e.from_offset and f.version <> f.written_version)`);
