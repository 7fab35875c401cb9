import type { Queryable } from '../../../engines/postgres/port';

const SHORTEST_MS = 60_000;
const LONGEST_MS = 24 * 3_600_000;
/** Approximate number of complete partitions; the inverse is the share that is kept too long. */
const KEPT = 4;

/** Milliseconds of one partition of the outbox for a retention of `keep_ms`. */
const lengthOf = (keep_ms: number): number => Math.min(Math.max(Math.ceil(keep_ms / KEPT), SHORTEST_MS), LONGEST_MS);

const interval = (ms: number): string => `${ms} milliseconds`;

/**
 * Creates the next partitions of the outbox, and drops those whose youngest message is older than `keep_ms`; returns
 * the names of the dropped. Channel heads stay: a channel's sequence never restarts.
 * @throws the database's error when tables were in use for too long; the call can be retried
 */
export async function rotateOutboxPartitions(db: Queryable, keep_ms: number): Promise<string[]> {
  await db.query('select ensure_outbox_partitions($1)', [interval(lengthOf(keep_ms))]);
  const dropped: string[] = [];
  for (;;) {
    const [row] = await db.query<{ name: string | null }>('select drop_outbox_partition($1) as name', [
      interval(keep_ms),
    ]);
    if (row!.name === null) break;
    dropped.push(row!.name);
  }
  // Messages that arrived while no partition covered their time.
  await db.query(`delete from outbox_default where created_at < clock_timestamp() - $1::interval`, [interval(keep_ms)]);
  return dropped;
}
