import type { StoredEvent } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import type { BrokerRecord } from '../../engines/broker/port';
import type { LoggedRecord } from '../../engines/records/port';
import { sourceOf, type Reader } from './checkpoints';
import type { ApplyMode } from '../../kernel/projection';

/** What one projection is fed, one by one: a decoded record and its stored form, or a domain event. */
export type Item =
  { kind: 'record'; record: LoggedRecord; stored: BrokerRecord } | { kind: 'event'; event: StoredEvent };

export type Reason = 'poison' | 'undecodable' | 'blocked';

/** Something that could not be applied, with why. */
export interface Parked {
  item: Item | { kind: 'undecodable'; stored: BrokerRecord };
  reason: Reason;
  error: string;
}

export interface DeadLetter {
  id: number;
  projection: string;
  source: string;
  partition: number;
  position: string;
  stream: string | null;
  revision: number | null;
  type: string | null;
  account_id: string | null;
  record: Buffer | null;
  record_key: string | null;
  /** JSON text. */
  headers: string | null;
  /** JSON text of the domain event. */
  event: string | null;
  appended_at: string | null;
  reason: Reason;
  error: string;
  attempts: number;
  status: 'parked' | 'retried' | 'dropped';
  first_failed_at: string;
  last_failed_at: string;
  settled_at: string | null;
  /** It was parked while nothing was announced: its retry announces nothing either. */
  silent: boolean;
}

/** Partition and position as dead letters name them. */
export function placeOf(item: Parked['item']): { partition: number; position: string } {
  if (item.kind === 'event') return { partition: 0, position: item.event.position };
  return { partition: item.stored.partition, position: String(item.stored.offset) };
}

/**
 * Parks in the caller's transaction, beside its neighbours' effects. What is parked already keeps its id, counts one
 * more attempt and takes the new reason. The table is the authority on what was not applied.
 */
export async function park(
  tx: Queryable,
  p: Reader,
  parked: readonly Parked[],
  { rebuilding, silent = false }: ApplyMode,
): Promise<void> {
  for (const { item, reason, error } of parked) {
    const { partition, position } = placeOf(item);
    const event = item.kind === 'event' ? item.event : null;
    const stored = item.kind === 'event' ? null : item.stored;
    const record = item.kind === 'record' ? item.record : null;
    await tx.query(
      `insert into dead_letters as d (projection, source, partition, position, stream, revision, type, account_id,
         record, record_key, headers, event, appended_at, reason, error, silent)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
       on conflict (projection, source, partition, position) do update
         set reason = excluded.reason, error = excluded.error, last_failed_at = clock_timestamp(),
             attempts = d.attempts + case when excluded.reason = 'blocked' then 0 else 1 end
         where d.status = 'parked'`,
      [
        p.name,
        sourceOf(p),
        partition,
        position,
        event?.stream ?? null,
        event?.revision ?? null,
        event?.type ?? record?.type ?? null,
        event?.metadata.account_id ?? record?.account_id ?? null,
        stored?.value ?? null,
        stored?.key ?? null,
        stored ? JSON.stringify(stored.headers) : null,
        event ? JSON.stringify(asStored(event)) : null,
        event?.recorded_at ?? stored?.appended_at ?? null,
        reason,
        error,
        rebuilding || silent,
      ],
      'dead_letters_park',
    );
  }
}

/** The event as it may lie in a table: of the version that marks it, its personal members sealed. */
const asStored = ({ stored, ...event }: StoredEvent): StoredEvent => ({ ...event, data: stored ?? event.data });

/** Those of `streams` that wait behind a parked event of this projection. */
export async function waitingStreams(tx: Queryable, p: Reader, streams: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query(
    `select distinct stream from dead_letters
     where projection = $1 and stream = any($2) and status = 'parked'`,
    [p.name, streams],
    'dead_letters_waiting',
  );
  return new Set(rows.map((row) => row.stream as string));
}

/** Parked letters, newest last; of all projections when none is named. */
export function listDeadLetters(
  db: Queryable,
  filter: { projection?: string; status?: DeadLetter['status']; limit?: number } = {},
): Promise<DeadLetter[]> {
  return db.query<DeadLetter>(
    `select * from dead_letters
     where ($1::text is null or projection = $1) and status = $2 order by id limit $3`,
    [filter.projection ?? null, filter.status ?? 'parked', filter.limit ?? 100],
  );
}

const HEADS_PAGE = 500;

/**
 * Ids of parked letters by which everything can be tried again: what waits behind another of its stream comes with it.
 * Where a settling was cut off, the first that still waits stands for its stream.
 */
export async function* parkedHeads(db: Queryable, projection: string | null): AsyncGenerator<number> {
  for (let after = 0; ;) {
    const rows = await db.query<{ id: number }>(
      `select id from dead_letters d where status = 'parked' and id > $1
         and ($2::text is null or projection = $2)
         and (reason <> 'blocked' or not exists (
           select from dead_letters b where b.projection = d.projection and b.stream = d.stream
             and b.status = 'parked' and b.revision < d.revision))
       order by id limit $3`,
      [after, projection, HEADS_PAGE],
    );
    for (const { id } of rows) yield (after = id);
    if (rows.length < HEADS_PAGE) return;
  }
}

export async function findDeadLetter(db: Queryable, id: number): Promise<DeadLetter | undefined> {
  return (await db.query<DeadLetter>('select * from dead_letters where id = $1', [id]))[0];
}

/** How many are parked, by projection. */
export async function countParked(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.query(
    `select projection, count(*) as parked from dead_letters where status = 'parked' group by projection`,
  );
  return new Map(rows.map((row) => [row.projection as string, row.parked as number]));
}
