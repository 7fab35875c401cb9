import type { Queryable } from '../../engines/postgres/port';

/** The mark: each writer of the outbox holds the lock of all of it. See migrations/0120-outbox-shards.ts. */
export const ONE_ORDER = 'outbox_one_order';

/**
 * A process of a build before this order is told by the name of its wake-up link, which it has as long as it reads or
 * writes the outbox; its other sessions end with it, or within half a minute when its machine is gone.
 */
const BEFORE = `
  select 1 as one from pg_stat_activity
  where datname = current_database() and application_name = 'lumio wakeups' limit 1`;
const MARKED = `select 1 as one from installation where name = '${ONE_ORDER}'`;

/** How long no process of a build before must have been seen: longer than one needs to connect again. */
const QUIET_MS = 60_000;

/** True while processes of a build before may read the outbox by one order of ids. */
export const keepsOneOrder = async (db: Queryable): Promise<boolean> => (await db.query(MARKED)).length > 0;

/**
 * Keeps the outbox in one order of ids as long as processes of a build before are connected. Each call is one look;
 * true when shards have only their own. When one comes back, writers keep the one order again from the next look on.
 * Time in which nobody looked, or nobody could, is no quiet: a database that was away is away for all, and the process
 * of before may need longer than this one to connect again.
 * @param quiet_ms how long none must have been seen
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
      // Together: without the mark nobody reads the rows of writers that knew of no shards.
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
