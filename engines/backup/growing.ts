import { pipeline, PassThrough } from 'node:stream';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { ident } from '../../kernel/sql';
import type { Queryable } from '../postgres/port';
import { relation, type TableShape } from './catalog';

/** Bounds by which the rows of a snapshot are found without the snapshot. */
export interface Bound {
  /** `from` and `where` of the rows in one part of the table, which is named `r`. */
  rows(part: string): string;
  /** Number of these rows; null when rows of transactions running at the snapshot may be among them. */
  count: number | null;
  /** Partitions whose rows may move to another one, so that only the snapshot finds all of them. */
  movable: string[];
}

/**
 * Large tables whose rows are inserted and never changed. Their bounds are read in the snapshot, their rows after it:
 * a snapshot of hours would keep every dead version of the rows that each commit updates.
 */
export const GROWING: Record<string, (db: Queryable, shape: TableShape) => Promise<Bound>> = {
  // First, because its movable rows are read in the snapshot.
  ledger: boundOfLedger,
  broker_records: boundOfRecords,
  domain_events: boundOfEvents,
};

/** Events up to the last position: positions are dense and in the order of commits. */
async function boundOfEvents(db: Queryable): Promise<Bound> {
  const [{ first, last } = { first: 1, last: 0 }] = await db.query<{ first: number; last: number }>(
    'select coalesce(min(position), 1) as first, coalesce(max(position), 0) as last from domain_events',
  );
  return {
    rows: (part) => `from ${part} r where r.position <= ${last}`,
    count: last - first + 1,
    movable: [],
  };
}

/** Records between `earliest` and the end: offsets of a partition are dense, trimmed records are deleted in steps. */
async function boundOfRecords(db: Queryable): Promise<Bound> {
  const partitions = await db.query<Record<'topic_id' | 'partition' | 'earliest' | 'next_offset', number>>(
    'select topic_id, partition, earliest, next_offset from broker_partitions',
  );
  if (partitions.length === 0) return { rows: (part) => `from ${part} r where false`, count: 0, movable: [] };
  const values = partitions.map((one) => `(${one.topic_id}, ${one.partition}, ${one.earliest}, ${one.next_offset})`);
  return {
    rows: (part) => `from ${part} r join (values ${values.join(', ')}) b (topic_id, partition, earliest, next_offset)
      on b.topic_id = r.topic_id and b.partition = r.partition
      where r."offset" >= b.earliest and r."offset" < b.next_offset`,
    count: partitions.reduce((sum, { earliest, next_offset }) => sum + next_offset - earliest, 0),
    movable: [],
  };
}

/**
 * Excludes rows whose transaction number is later than the snapshot, because their record may be later than the
 * backed-up log. Numbers repeat after 4 billion transactions, so that only rows of the last day are compared. Rows of
 * transactions that were running refer to records of the backed-up log: a batch is read before its transaction begins.
 */
async function boundOfLedger(db: Queryable, { partitions }: TableShape): Promise<Bound> {
  const [{ now, next }] = (await db.query<{ now: string; next: string }>(
    `select now()::text as now, (pg_snapshot_xmax(pg_current_snapshot())::text::numeric % 4294967296)::text as next`,
  )) as [{ now: string; next: string }];
  return {
    rows: (part) => `from ${part} r where not (r.taken_at > '${now}'::timestamptz - interval '1 day'
      and (r.xmin::text::bigint - ${next} + 4294967296) % 4294967296 < 2147483648)`,
    count: null,
    movable: partitions.filter(({ bound }) => bound === 'DEFAULT').map(({ name }) => name),
  };
}

/** A table without partitions, or one of its partitions that holds rows. */
export interface Part {
  name: string;
  /** Number of blocks at the snapshot, whose rows are in no later block. */
  blocks: number;
}

/** Parts of a table with their blocks; call within the snapshot. */
export function partsOf(db: Queryable, { name, partitions }: TableShape): Promise<Part[]> {
  const leaves = partitions.filter(({ part_key }) => part_key === null).map((partition) => partition.name);
  return db.query<{ name: string; blocks: number }>(
    `select name, pg_relation_size(format('public.%I', name)::regclass) / current_setting('block_size')::int8 as blocks
     from unnest($1::text[]) name`,
    [partitions.length > 0 ? leaves : [name]],
  );
}

/** Target size of the rows of a statement, bytes; up to twice as many wait in memory for a slow target. */
const RANGE_BYTES = 16 * 1024 * 1024;
const FIRST_BLOCKS = 64;
const MAX_BLOCKS = 8_192;

/** Rows of one part in COPY's text format, a range of its blocks in each statement. Returns their number. */
export async function* copyRanges(
  client: pg.PoolClient,
  columns: readonly string[],
  part: Part,
  bound: Bound,
): AsyncGenerator<Buffer, number> {
  let rows = 0;
  let size = FIRST_BLOCKS;
  for (let block = 0; block < part.blocks;) {
    const end = Math.min(block + size, part.blocks);
    const range = `and r.ctid >= '(${block},0)' and r.ctid < '(${end},0)'`;
    const copied = yield* copyRows(client, columns, `${bound.rows(relation(part.name))} ${range}`);
    rows += copied.rows;
    const fitting = Math.floor((size * RANGE_BYTES) / Math.max(copied.bytes, 1));
    size = Math.max(1, Math.min(fitting, size * 2, MAX_BLOCKS));
    block = end;
  }
  return rows;
}

/** Copies rows in one statement; buffers them, so that a slow reader does not prolong the statement. */
export async function* copyRows(
  client: pg.PoolClient,
  columns: readonly string[],
  rows_of: string,
): AsyncGenerator<Buffer, { rows: number; bytes: number }> {
  const list = columns.map((column) => `r.${ident(column)}`).join(', ');
  const rows = client.query(copyTo(`copy (select ${list} ${rows_of}) to stdout`));
  const held = new PassThrough({ highWaterMark: 2 * RANGE_BYTES });
  pipeline(rows, held, () => undefined); // a failure reaches the reader
  let bytes = 0;
  for await (const chunk of held as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    yield chunk;
  }
  return { rows: rows.rowCount, bytes };
}
