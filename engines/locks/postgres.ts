import type pg from 'pg';
import { keptSession } from '../postgres/kept-session';
import { type HeldLock, type LockKey, LockLost, LockTaken } from './port';

/** A lock's number or numbers as the database's functions take them, and as pg_locks shows them. */
const sqlOf = (lock: LockKey) =>
  typeof lock === 'number'
    ? { arguments: '$1::bigint', values: [lock], shown: '($1::bigint >> 32, $1::bigint & 4294967295, 1)' }
    : {
        arguments: '$1::int, hashtext($2)',
        values: [lock.pair, lock.name],
        shown: '($1::bigint, hashtext($2)::bigint & 4294967295, 2)',
      };

/**
 * See {@link Database.hold}. The lock ends with the work, or with the process however that ends.
 * @throws LockTaken
 */
export function holdLock<T>(config: pg.ClientConfig, lock: LockKey, work: (held: HeldLock) => Promise<T>): Promise<T> {
  const { arguments: key, values, shown } = sqlOf(lock);
  const session = { config, name: 'lumio lock', lost: (cause: unknown) => new LockLost(cause) };
  return keptSession(session, async (client, lost) => {
    const { rows } = await client.query<{ mine: boolean; pid: number }>(
      `select pg_try_advisory_lock(${key}) as mine, pg_backend_pid() as pid`,
      values,
    );
    const { mine, pid } = rows[0]!;
    if (!mine) throw new LockTaken();
    const held = `
      select 1 as one from pg_locks
      where locktype = 'advisory' and granted and mode = 'ExclusiveLock' and pid = $${values.length + 1}::int
        and database = (select oid from pg_database where datname = current_database())
        and (classid::bigint, objid::bigint, objsubid) = ${shown}`;
    return work({
      signal: lost,
      stillHeld: async (tx) => !lost.aborted && (await tx.query(held, [...values, pid])).length > 0,
    });
  });
}
