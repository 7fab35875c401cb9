import type { Queryable } from '../../../engines/postgres/port';

/**
 * Mark in `installation`: each writer of the outbox holds the lock of the whole outbox. See
 * migrations/0120-outbox-shards.ts.
 */
export const ONE_ORDER = 'outbox_one_order';

/**
 * Detects a process of a release before outbox shards by the name of its wake-up connection, which exists as long as it
 * reads or writes the outbox; its other sessions end with it, or within half a minute when its machine fails.
 */
const BEFORE = `
  select 1 as one from pg_stat_activity
  where datname = current_database() and application_name = 'lumio wakeups' limit 1`;
const MARKED = `select 1 as one from installation where name = '${ONE_ORDER}'`;

/** Milliseconds without such a process before the order ends: longer than a process needs to reconnect. */
const QUIET_MS = 60_000;

/** True while processes of a release before outbox shards may read the outbox in one order of ids. */
export const keepsOneOrder = async (db: Queryable): Promise<boolean> => (await db.query(MARKED)).length > 0;

/**
 * Keeps the outbox in one order of ids while processes of a release before outbox shards are connected. Each call is
 * one check; returns true when each shard has its own order. When such a process reconnects, writers keep the single
 * order again from the next check on. Time without a successful check does not count as quiet, because an unavailable
 * database is unavailable for all, and the older process may need longer than this one to reconnect.
 * @param quiet_ms milliseconds without such a process
 */
export function createOutboxOrder(db: Queryable, quiet_ms = QUIET_MS, now = () => performance.now()) {
  let seen_at = now();
  let looked_at = now();
  let marked: boolean | undefined;
  const look = async (): Promise<boolean> => {
    const before = (await db.query(BEFORE)).length > 0;
    if (before) seen_at = now();
    if (marked === undefined || before) marked = await keepsOneOrder(db);
    if (before && !marked) {
      await db.query(`insert into installation (name, value) values ($1, 'kept') on conflict do nothing`, [ONE_ORDER]);
      marked = true;
    } else if (marked && now() - seen_at >= quiet_ms) {
      // One statement: without the mark no process reads the rows of writers without shards.
      await db.query(
        `with gone as (delete from installation where name = $1 returning 1)
         delete from outbox_heads where shard = 64 and exists (select from gone)`,
        [ONE_ORDER],
      );
      marked = false;
    }
    return !marked;
  };
  return async (): Promise<boolean> => {
    if (now() - looked_at >= quiet_ms) seen_at = now();
    try {
      return await look();
    } catch (error) {
      seen_at = now();
      throw error;
    } finally {
      looked_at = now();
    }
  };
}
