import { LOCKS } from '../locks/port';
import type { Database, Queryable } from '../postgres/port';
import { JOB_SCHEMA } from './names';
import { ENDS, INTERRUPTED, PARKS } from './flags';
import { UNKNOWN } from './rows';

const JOBS = `${JOB_SCHEMA}._private_jobs`;

/** The advisory lock that a process holds until it ends (engines/postgres/process-session.ts). */
export interface LivingProcess {
  readonly lock: number;
  readonly held: boolean;
  ready(): Promise<void>;
}

/** Registers the process of this lock as the holder of the jobs of this pool; may be repeated. */
export async function register(db: Database, pool: string, lock: number): Promise<void> {
  await db.query(
    `insert into job_holders (pool, lock) values ($1, $2)
     on conflict (pool) do update set lock = excluded.lock where job_holders.lock <> excluded.lock`,
    [pool, lock],
  );
}

export async function unregister(db: Database, pool: string): Promise<void> {
  await db.query('delete from job_holders where pool = $1', [pool]);
}

const DIED = 'the process that ran it died';

/**
 * Unlocks jobs whose try has an unknown outcome; those that park are parked, those that end are marked and keep a try,
 * in which they end.
 */
async function release(tx: Queryable, where: string, values: readonly unknown[]): Promise<number> {
  const released = await tx.query(
    `update ${JOBS} set locked_at = null, locked_by = null, updated_at = now(),
       last_error = case when flags ? '${PARKS}' then '${UNKNOWN}${DIED}' else '${DIED}' end,
       attempts = case when flags ? '${PARKS}' then max_attempts
         when flags ? '${ENDS}' then least(attempts, max_attempts - 1) else attempts end,
       flags = case when flags ? '${ENDS}' then flags || '{"${INTERRUPTED}": true}' else flags end
     where ${where} returning 1 as one`,
    values,
  );
  return released.length;
}

/**
 * For the holder itself: renews the lock time of its running jobs (the library would release them after four hours),
 * and releases jobs that it holds and does not run, because writing their end failed. Returns the number of released
 * jobs.
 */
export async function extendLocks(
  db: Database,
  pool: string,
  running: readonly string[],
  grace_ms: number,
): Promise<number> {
  await db.query(
    `update ${JOBS} set locked_at = now()
     where locked_by = $1 and id = any($2::bigint[]) and locked_at < now() - interval '1 hour'`,
    [pool, running],
  );
  return release(db, `locked_by = $1 and id <> all($2::bigint[]) and locked_at < ${ago('$3')}`, [
    pool,
    running,
    grace_ms,
  ]);
}

const ago = (ms: string) => `now() - ${ms} * interval '1 millisecond'`;

/**
 * Releases the jobs of unknown holders, and of processes whose lock has been free for `grace_ms`, so that a process
 * whose connection broke can reconnect. A process without its connection for that time has stopped its jobs by then,
 * see workers.ts. Returns the number of released jobs.
 */
export async function releaseDead(db: Database, grace_ms: number): Promise<number> {
  await db.query(
    `with looked as (
       select pool, exists (
         select from pg_locks l where l.locktype = 'advisory' and l.granted and l.objsubid = 1
           and l.database = (select oid from pg_database where datname = current_database())
           and (l.classid::int8 << 32 | l.objid::int8) = h.lock
       ) as alive from job_holders h
     )
     update job_holders h set dead_since = case when alive then null else now() end
     from looked where looked.pool = h.pool and alive = (h.dead_since is not null)`,
  );
  const gone = `select pool from job_holders where dead_since < ${ago('$1')}`;
  const unknown = `select locked_by from ${JOBS} where locked_at < ${ago('$1')}
    and locked_by not in (select pool from job_holders)`;
  // Without dead holders, which is the usual case, no transaction is needed.
  if ((await db.query(`${gone} union all ${unknown}`, [grace_ms])).length === 0) return 0;
  return db.transaction(async (tx) => {
    const [mine] = await tx.query('select pg_try_advisory_xact_lock($1) as mine', [LOCKS.job_release]);
    if (!mine!.mine) return 0;
    const dead = await tx.query<{ pool: string }>(
      `with gone as (delete from job_holders where dead_since < ${ago('$1')} returning pool)
       select pool from gone union ${unknown}`,
      [grace_ms],
    );
    return dead.length === 0 ? 0 : release(tx, 'locked_by = any($1)', [dead.map(({ pool }) => pool)]);
  });
}
