import type { Database, Queryable } from '../../engines/postgres/port';
import type { JobRequest } from '../../kernel/job';

/** Most transactions of one call. */
const BATCHES = 100;
/** Due schedules that one transaction takes. */
const BATCH = 500;

/** Sets the schedule of an owner: $1 owner, $2 account, $3 job, $4 seconds. A new interval begins now. */
export const SET_SCHEDULE = `
  insert into account_schedules as s (owner, account_id, job, interval_seconds, next_due_at)
  values ($1, $2, $3, $4::int, now() + make_interval(secs => $4::int))
  on conflict (owner) do update set job = excluded.job, interval_seconds = excluded.interval_seconds,
    next_due_at = case when s.interval_seconds = excluded.interval_seconds then s.next_due_at
      else excluded.next_due_at end`;
export const DROP_SCHEDULE = 'delete from account_schedules where owner = $1';
export const DROP_SCHEDULES_OF_ACCOUNT = 'delete from account_schedules where account_id = $1';

/** Next due time of an owner, in milliseconds since 1970; Infinity without a schedule. */
export async function nextDue(db: Pick<Queryable, 'query'>, owner: string): Promise<number> {
  const [row] = await db.query<{ next_ms: number }>(
    'select (extract(epoch from next_due_at) * 1000)::float8 as next_ms from account_schedules where owner = $1',
    [owner],
    'schedule-next',
  );
  return row?.next_ms ?? Infinity;
}

/** The next due time follows now, so that missed ones are one. */
const TAKE = `
  with due as (
    select owner, next_due_at from account_schedules where next_due_at <= now()
    order by next_due_at limit ${BATCH} for update skip locked
  )
  update account_schedules s set next_due_at = s.next_due_at + s.interval_seconds
      * (floor(extract(epoch from now() - s.next_due_at) / s.interval_seconds) + 1) * interval '1 second'
  from due where s.owner = due.owner
  returning s.owner, s.account_id, s.job, due.next_due_at as due_at, s.next_due_at`;

interface Due {
  owner: string;
  account_id: string;
  job: string;
  due_at: string;
  next_due_at: string;
}

/**
 * Starts one job for each schedule that is due, in the transaction that moves its due time. A job expires when the next
 * one is due. Returns the number of jobs.
 */
export async function startDue(db: Database, enqueue: Enqueue): Promise<number> {
  let started = 0;
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const some = await startSome(db, enqueue);
    started += some;
    if (some < BATCH) break;
  }
  return started;
}

type Enqueue = (tx: Queryable, jobs: readonly JobRequest[]) => Promise<void>;

function startSome(db: Database, enqueue: Enqueue): Promise<number> {
  return db.transaction(async (tx) => {
    const due = await tx.query<Due & Record<string, unknown>>(TAKE, [], 'schedules-due');
    const jobs = due.map(({ owner, account_id, job, due_at, next_due_at }) => ({
      ...{ name: job, key: `${owner}:${due_at}`, payload: { account_id }, expires_at: next_due_at },
    }));
    if (jobs.length > 0) await enqueue(tx, jobs);
    return jobs.length;
  });
}
