import type { StoredEvent } from '../../../engines/event-store/port';
import type { Queryable } from '../../../engines/postgres/port';
import type { BrokerRecord } from '../../../engines/broker/port';
import type { LoggedRecord } from '../../../engines/records/port';
import { sourceOf, type Reader } from '../checkpoint/checkpoints';
import { GLOBAL_ACCOUNT } from '../../../kernel/event';
import type { ApplyMode } from '../../../kernel/projection';

/** Input of a projection: a decoded record and its stored form, or a domain event. */
export type Item =
  { kind: 'record'; record: LoggedRecord; stored: BrokerRecord } | { kind: 'event'; event: StoredEvent };

export type Reason = 'poison' | 'undecodable' | 'blocked';

/** Item that could not be applied, with the reason. */
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
  /** True when the letter was parked during a silent build: its retry announces nothing either. */
  silent: boolean;
}

/** Partition and position of an item in the dead letters. */
export function positionOf(item: Parked['item']): { partition: number; position: string } {
  if (item.kind === 'event') return { partition: 0, position: item.event.position };
  return { partition: item.stored.partition, position: String(item.stored.offset) };
}

/**
 * Parks items in the caller's transaction, together with the effects of the others. An item that is parked already
 * keeps its id, counts one more attempt and takes the new reason. The table is the authority on unapplied items.
 */
export async function park(tx: Queryable, p: Reader, parked: readonly Parked[], mode: ApplyMode): Promise<void> {
  let some: Parked[] = [];
  let bytes = 0;
  for (const one of parked) {
    some.push(one);
    bytes += one.item.kind === 'event' ? PARKED_EVENT_BYTES : (one.item.stored.value?.length ?? 0);
    if (bytes < PARKED_BYTES && some.length < MAX_PARKED) continue;
    await parkTogether(tx, p, some, mode);
    some = [];
    bytes = 0;
  }
  if (some.length > 0) await parkTogether(tx, p, some, mode);
}

/** Bounds of one statement, whose parameters are held in memory as text. */
const PARKED_BYTES = 1_000_000;
const MAX_PARKED = 500;
/** Assumed size of an event. */
const PARKED_EVENT_BYTES = 4000;

async function parkTogether(
  tx: Queryable,
  p: Reader,
  parked: readonly Parked[],
  { rebuilding, silent = false }: ApplyMode,
): Promise<void> {
  const rows = parked.map(({ item, reason, error }) => {
    const { partition, position } = positionOf(item);
    const event = item.kind === 'event' ? item.event : null;
    const stored = item.kind === 'event' ? null : item.stored;
    const record = item.kind === 'record' ? item.record : null;
    return {
      partition,
      position,
      stream: event?.stream ?? null,
      revision: event?.revision ?? null,
      type: event?.type ?? record?.type ?? null,
      account_id: event?.metadata.account_id ?? record?.account_id ?? null,
      record: stored?.value ?? null,
      record_key: stored?.key ?? null,
      headers: stored ? JSON.stringify(stored.headers) : null,
      event: event ? JSON.stringify(asStored(event)) : null,
      appended_at: event?.recorded_at ?? stored?.appended_at ?? null,
      reason,
      error,
    };
  });
  const column = (name: keyof (typeof rows)[number]) => rows.map((row) => row[name]);
  await tx.query(
    `insert into dead_letters as d (projection, source, silent, partition, position, stream, revision, type, account_id,
       record, record_key, headers, event, appended_at, reason, error)
     select $1, $2, $3, p.partition, p.position, p.stream, p.revision, p.type, p.account_id, p.record, p.record_key,
       p.headers, p.event, p.appended_at, p.reason, p.error
     from unnest($4::integer[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::bytea[],
       $11::text[], $12::json[], $13::json[], $14::timestamptz[], $15::text[], $16::text[]) with ordinality
       as p (partition, position, stream, revision, type, account_id, record, record_key, headers, event, appended_at,
         reason, error, nth)
     order by p.nth
     on conflict (projection, source, partition, position) do update
       set reason = excluded.reason, error = excluded.error, last_failed_at = clock_timestamp(),
           attempts = d.attempts + case when excluded.reason = 'blocked' then 0 else 1 end
       where d.status = 'parked'`,
    [
      p.name,
      sourceOf(p),
      rebuilding || silent,
      column('partition'),
      column('position'),
      column('stream'),
      column('revision'),
      column('type'),
      column('account_id'),
      column('record'),
      column('record_key'),
      column('headers'),
      column('event'),
      column('appended_at'),
      column('reason'),
      column('error'),
    ],
    'dead_letters_park',
  );
}

/** The event in its storable form: in the version that marks its personal members, and these sealed. */
const asStored = ({ stored, ...event }: StoredEvent): StoredEvent => ({ ...event, data: stored ?? event.data });

/** Returns the streams among `streams` that wait behind a parked event of this projection. */
export async function waitingStreams(tx: Queryable, p: Reader, streams: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query(
    `select distinct stream from dead_letters
     where projection = $1 and stream = any($2) and status = 'parked'`,
    [p.name, streams],
    'dead_letters_waiting',
  );
  return new Set(rows.map((row) => row.stream as string));
}

/**
 * Lane in which a reactor keeps events in order behind a parked one: the account, or the stream of an event that
 * belongs to no account. A stream is not enough, because a removed member's keys are events of other streams.
 */
export const laneOf = ({ metadata, stream }: StoredEvent): string => laneIn(metadata.account_id, stream);

/** Lane of a reactor's letter. Letters get their ids in the order of the log. */
export const laneOfLetter = ({ account_id, stream }: DeadLetter): string => laneIn(account_id, stream!);

const laneIn = (account_id: string | null | undefined, stream: string): string => {
  const account = account_id ?? GLOBAL_ACCOUNT;
  return account === GLOBAL_ACCOUNT ? stream : account;
};

/** Lane of a letter in SQL, as the index dead_letters_lanes has it. */
export const laneColumn = (letter = 'dead_letters'): string =>
  `coalesce(nullif(${letter}.account_id, '${GLOBAL_ACCOUNT}'), ${letter}.stream)`;

/** Returns the lanes of `events` that wait behind a parked event of this reactor. */
export async function waitingLanes(tx: Queryable, p: Reader, events: readonly StoredEvent[]): Promise<Set<string>> {
  const rows = await tx.query<{ lane: string }>(
    `select distinct ${laneColumn()} as lane from dead_letters
     where projection = $1 and ${laneColumn()} = any($2) and status = 'parked'`,
    [p.name, [...new Set(events.map(laneOf))]],
    'dead_letters_lanes',
  );
  return new Set(rows.map(({ lane }) => lane));
}

/** Lists parked letters, newest last; of all projections without a filter. */
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
 * Ids of the parked letters whose retry covers all letters: a letter behind another of its stream (of a reactor: of its
 * lane) is retried with it. After an interrupted settling the first waiting letter stands for its stream.
 */
export async function* parkedHeads(db: Queryable, projection: string | null): AsyncGenerator<number> {
  for (let after = 0; ;) {
    const rows = await db.query<{ id: number }>(
      `select id from dead_letters d where status = 'parked' and id > $1
         and ($2::text is null or projection = $2)
         and (reason <> 'blocked' or case when projection like 'reactor:%'
           then not exists (select from dead_letters b where b.projection = d.projection and b.id < d.id
             and ${laneColumn('b')} = ${laneColumn('d')} and b.status = 'parked')
           else not exists (select from dead_letters b where b.projection = d.projection and b.stream = d.stream
             and b.status = 'parked' and b.revision < d.revision) end)
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

/** Days that a letter is kept after a successful retry. */
const RETRIED_DAYS = 30;

/**
 * Deletes letters that were applied long ago, a bounded number at a time. Dropped letters stay: a rebuild that read
 * their records would park them again. Returns the number of deleted letters.
 */
export async function trimRetriedLetters(db: Queryable): Promise<number> {
  for (let trimmed = 0; ;) {
    const rows = await db.query(
      `delete from dead_letters where id in (
         select id from dead_letters
         where status = 'retried' and settled_at < now() - make_interval(days => $1) limit 1000
       ) returning 1 as one`,
      [RETRIED_DAYS],
    );
    trimmed += rows.length;
    if (rows.length === 0) return trimmed;
  }
}

/** A count reads every parked letter, so it is repeated only after this multiple of its duration. */
const COUNT_SPARING = 50;

/** Returns a form of {@link countParked} for frequent calls: between counts it returns the last result. */
export function sparingCounts(db: Queryable): () => Promise<ReadonlyMap<string, number>> {
  let counts: ReadonlyMap<string, number> = new Map();
  let next = 0;
  return async () => {
    const begun = performance.now();
    if (begun < next) return counts;
    counts = await countParked(db);
    const ended = performance.now();
    next = ended + COUNT_SPARING * (ended - begun);
    return counts;
  };
}

/** Number of parked letters by projection. */
export async function countParked(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.query(
    `select projection, count(*) as parked from dead_letters where status = 'parked' group by projection`,
  );
  return new Map(rows.map((row) => [row.projection as string, row.parked as number]));
}
