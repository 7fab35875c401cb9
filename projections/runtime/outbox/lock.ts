import type { Queryable } from '../../../engines/postgres/port';

const MARKED = `select 1 as one from installation where name = 'outbox_lock'`;
/**
 * Running transactions: each holds its own number in pg_locks, which any role may read; sessions of other databases do
 * not matter.
 */
const RUNNING = `
  select l.virtualtransaction as number from pg_locks l join pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'virtualxid' and l.granted and a.datname = current_database() and a.pid <> pg_backend_pid()`;

/**
 * Moves the outbox to its own lock (migrations/0024-outbox-lock.ts). Each call is one check; returns true when the
 * outbox uses its own lock alone. A call of the function's earlier text runs in a transaction that began before the
 * step: once every transaction of the first check has ended, none remains, and none can begin. Processes of the
 * previous release call the same function in the database, so they need no other wait.
 */
export function createOutboxLock(db: Queryable): () => Promise<boolean> {
  let alone = false;
  let earlier: Set<string> | undefined;
  return async () => {
    if (alone) return true;
    if ((await db.query(MARKED)).length > 0) {
      const running = new Set((await db.query<{ number: string }>(RUNNING)).map(({ number }) => number));
      earlier = new Set([...(earlier ?? running)].filter((number) => running.has(number)));
      if (earlier.size > 0) return false;
      await db.query(`delete from installation where name = 'outbox_lock'`);
    }
    return (alone = true);
  };
}
