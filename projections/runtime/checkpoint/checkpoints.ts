import { DOMAIN_EVENTS } from '../../../domain/common/records';
import type { Database, Queryable } from '../../../engines/postgres/port';
import { isConflict } from '../../../kernel/failures';
import type { EventProjection, Projection, RecordProjection } from '../../../kernel/projection';
import { retry } from '../../../lib/async/retry';

/** Position before the first event. */
export const BEGINNING = '';

export interface Checkpoint {
  partition: number;
  engine: string;
  version: number;
  /** Next offset to read, or the position of the last event seen. */
  position: string;
  /** End of the source at the first start; earlier items are not announced. Null: the source was empty. */
  silent_to: string | null;
  /** True after the end in `silent_to`. */
  built: boolean;
  /** Number of erasures of persons; each refuses the batches decoded before it, see {@link refuseDecoded}. */
  erasures: number;
}

export interface Move {
  partition: number;
  from: string;
  to: string;
  /** True when the move passes the end of a silent build. */
  built?: boolean;
  /** The checkpoint's erasures when the batch was decoded; absent: decoding opened no personal part of a record. */
  erasures?: number;
}

/**
 * Thrown when the compare-and-set finds another position, because another worker drives this projection, or an erasure
 * after the batch was decoded. The transaction must be rolled back.
 */
export class CheckpointLost extends Error {
  constructor(projection: string, moves: readonly Move[]) {
    const places = moves.map((move) => `partition ${move.partition} at ${move.from || 'the beginning'}`).join(', ');
    super(`projection ${projection}: the checkpoint was moved by another worker or an erasure (${places})`);
    this.name = 'CheckpointLost';
  }
}

/**
 * The checkpoint belongs to another log; its positions mean nothing here. The checkpoint must not be deleted: the
 * ledger of accepted records belongs to it, and without the ledger old deliveries have effects again.
 */
export class EngineMismatch extends Error {
  constructor(projection: string, source: string, stored: string, current: string) {
    super(
      `projection ${projection}: its checkpoint on ${source} belongs to engine ${stored}, this is ${current}; ` +
        `connect the engine it was built from, or move to this one by lumio backup and lumio restore into a new database`,
    );
    this.name = 'EngineMismatch';
  }
}

/** The stored rows are of an earlier version of the projection: the new version is built next to them. */
export class Outdated extends Error {
  constructor(
    projection: string,
    readonly live: number,
    mine: number,
  ) {
    super(`projection ${projection}: its rows are of version ${live}, this program makes version ${mine}`);
    this.name = 'Outdated';
  }
}

/** The stored rows are of a later version: this program serves them, and neither builds nor projects. */
export class Superseded extends Error {
  constructor(projection: string, live: number, mine: number) {
    super(`projection ${projection}: version ${live} is live, and this program makes version ${mine}`);
    this.name = 'Superseded';
  }
}

/** The source no longer holds the records after the checkpoint. */
export class RebuildNeeded extends Error {
  constructor(projection: string, why: string) {
    super(`projection ${projection}: ${why}; run: lumio rebuild ${projection}`);
    this.name = 'RebuildNeeded';
  }
}

export const isRecordProjection = (p: Projection): p is RecordProjection => p.from.kind === 'topic';
export const isEventProjection = (p: Projection): p is EventProjection => p.from.kind === 'domain_events';

/** Owner of a checkpoint: a projection, or a relay. */
export type Reader = Pick<Projection, 'name' | 'version' | 'from'>;

/** Name of the projection's source in checkpoints and dead letters. */
export const sourceOf = (p: Pick<Reader, 'from'>): string => (p.from.kind === 'topic' ? p.from.topic : DOMAIN_EVENTS);

/** Checkpoints of the projection on its source, by partition. */
export async function readCheckpoints(db: Queryable, p: Reader): Promise<Map<number, Checkpoint>> {
  const rows = await db.query<Checkpoint>(
    `select partition, engine, version, position, silent_to, built, erasures from checkpoints
     where projection = $1 and source = $2`,
    [p.name, sourceOf(p)],
    'checkpoints_read',
  );
  return new Map(rows.map((row) => [row.partition, row]));
}

/** Pauses the projection until the transaction ends: its next batch waits at its fence. */
export async function lockCheckpoints(tx: Queryable, p: Reader): Promise<Map<number, Checkpoint>> {
  const rows = await tx.query<Checkpoint>(
    `select partition, engine, version, position, silent_to, built, erasures from checkpoints
     where projection = $1 and source = $2 order by partition for update`,
    [p.name, sourceOf(p)],
  );
  return new Map(rows.map((row) => [row.partition, row]));
}

/**
 * Refuses every batch of these projections that was decoded earlier: their commits fail at the compare-and-set, however
 * long a process was frozen. Waits for the batches that are being written.
 */
export async function refuseDecoded(db: Database, source: string, projections: readonly string[]): Promise<void> {
  await retry(
    () =>
      db.transaction(async (tx) => {
        const of = [source, projections];
        await tx.query(
          `select 1 from checkpoints where source = $1 and projection = any($2)
           order by projection, partition for update`,
          of,
        );
        await tx.query('update checkpoints set erasures = erasures + 1 where source = $1 and projection = any($2)', of);
      }),
    { first_ms: 50, most_ms: 1000, within_ms: 60_000, passing: isConflict },
  );
}

/** @throws EngineMismatch when any of them belongs to another engine */
export function checkEngine(p: Reader, checkpoints: Iterable<Checkpoint>, engine: string): void {
  for (const checkpoint of checkpoints) {
    if (checkpoint.engine !== engine) throw new EngineMismatch(p.name, sourceOf(p), checkpoint.engine, engine);
  }
}

/**
 * Returns the checkpoints to continue from and creates missing ones at `first`. `ends` are the present ends of the
 * source: without any checkpoint, everything up to them is built silently; a partition that appears later is announced
 * from its beginning.
 * @throws EngineMismatch, Outdated, Superseded
 */
export async function openCheckpoints(
  db: Queryable,
  p: Reader,
  engine: string,
  partitions: readonly number[],
  first: string,
  ends?: ReadonlyMap<number, string>,
): Promise<Map<number, Checkpoint>> {
  await db.query(
    `insert into checkpoints (projection, source, partition, engine, version, position, silent_to, built)
     select $1, $2, partition, $4, $5, $6, nullif(silent_to, $6), coalesce(silent_to, $6) = $6
     from (
       select partition, case when fresh then ending end as silent_to
       from unnest($3::integer[], $7::text[]) as place (partition, ending),
         (select not exists (select from checkpoints where projection = $1 and source = $2) as fresh) as any_before
     ) as place order by partition
     on conflict do nothing`,
    [p.name, sourceOf(p), partitions, engine, p.version, first, partitions.map((n) => ends?.get(n) ?? null)],
  );
  const checkpoints = await readCheckpoints(db, p);
  checkEngine(p, checkpoints.values(), engine);
  for (const { version } of checkpoints.values()) {
    if (version > p.version) throw new Superseded(p.name, version, p.version);
    if (version < p.version) throw new Outdated(p.name, version, p.version);
  }
  return new Map(partitions.map((partition) => [partition, checkpoints.get(partition)!]));
}

/**
 * Moves checkpoints by compare-and-set in the caller's transaction. The runtime sends it first: the row lock then
 * fences a second worker before it does any work, and a rollback undoes the move with everything else. The server ends
 * a transaction after `idle_ms` without a statement, so that a hanging worker cannot keep the row locked.
 * @throws CheckpointLost when any checkpoint is not where the batch began
 */
export async function moveCheckpoints(
  tx: Queryable,
  p: Reader,
  engine: string,
  moves: readonly Move[],
  idle_ms = 30_000,
): Promise<void> {
  const moved = await tx.query(
    `update checkpoints c set position = m.next, built = c.built or m.built, updated_at = clock_timestamp()
     from unnest($4::integer[], $5::text[], $6::text[], $9::boolean[], $10::bigint[])
       as m (partition, expected, next, built, erasures)
     where c.projection = $1 and c.source = $2 and c.engine = $3 and c.version = $7
       and c.partition = m.partition and c.position = m.expected
       and c.erasures = coalesce(m.erasures, c.erasures)
     returning set_config('idle_in_transaction_session_timeout', $8, true)`,
    [
      p.name,
      sourceOf(p),
      engine,
      moves.map((move) => move.partition),
      moves.map((move) => move.from),
      moves.map((move) => move.to),
      p.version,
      String(idle_ms),
      moves.map(({ built = false }) => built),
      moves.map(({ erasures = null }) => erasures),
    ],
    'checkpoints_move',
  );
  if (moved.length !== moves.length) throw new CheckpointLost(p.name, moves);
}
