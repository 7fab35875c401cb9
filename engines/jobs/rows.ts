import type { Queryable } from '../postgres/port';
import { flagsText, INTERRUPTED, OWNER } from './flags';
import { JOB_SCHEMA } from './names';
import type { JobQueue, JobState, NewJob, StoredJob } from './port';

const JOBS = `${JOB_SCHEMA}._private_jobs`;
const TASKS = `${JOB_SCHEMA}._private_tasks`;

/** Longest key; the library's column is limited, including the job's name before it. */
const LONGEST_KEY = 400;
/** Prefix of the error of a job that waits for an operator, because the outcome of its last try is unknown. */
export const UNKNOWN = 'outcome unknown: ';

const STATE = `case
  when j.locked_at is not null then 'running'
  when j.attempts >= j.max_attempts then
    case when starts_with(j.last_error, '${UNKNOWN}') then 'parked' else 'failed' end
  when j.run_at > now() then 'waiting'
  else 'ready' end`;

/**
 * Stores jobs without the library's own `add_job`, which sends a NOTIFY inside the transaction: commits with a NOTIFY
 * wait for each other in the whole cluster. Returns the number of new jobs.
 * @throws Error when a key is empty or too long
 */
export async function enqueue(tx: Queryable, jobs: readonly NewJob[]): Promise<number> {
  if (jobs.length === 0) return 0;
  const odd = jobs.find(({ key }) => key === '' || key.length > LONGEST_KEY);
  if (odd)
    throw new Error(`the key of a job ${odd.name} has ${odd.key.length} characters instead of 1 to ${LONGEST_KEY}`);
  const names = [...new Set(jobs.map(({ name }) => name))];
  await tx.query(
    `insert into ${TASKS} (identifier) select n from unnest($1::text[]) n
     where not exists (select from ${TASKS} t where t.identifier = n) on conflict do nothing`,
    [names],
  );
  const rows = await tx.query(
    `insert into ${JOBS} (task_id, key, payload, run_at, max_attempts, flags)
     select t.id, n.key, n.payload::json, coalesce(n.run_at::timestamptz, now()), n.tries,
       n.flags::jsonb
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::text[], $7::boolean[])
       as n (name, key, payload, run_at, tries, flags, alone)
     join ${TASKS} t on t.identifier = n.name
     where not exists (select from finished_jobs f where f.key = n.key)
       and not (n.alone and exists (
         select from ${JOBS} j
         where j.task_id = t.id and (j.attempts < j.max_attempts or j.locked_at is not null)
       ))
     on conflict (key) do nothing returning 1 as one`,
    [
      jobs.map(({ name }) => name),
      jobs.map(({ key }) => key),
      jobs.map(({ payload }) => JSON.stringify(payload)),
      jobs.map(({ run_at }) => run_at ?? null),
      jobs.map(({ tries }) => tries),
      jobs.map(flagsText),
      jobs.map(({ alone }) => alone ?? false),
    ],
  );
  return rows.length;
}

export const list: (db: Queryable, filter: Parameters<JobQueue['list']>[0]) => Promise<StoredJob[]> = (
  db,
  { state, name, limit },
) =>
  db.query<StoredJob>(
    `select * from (
       select j.id, t.identifier as name, j.key, ${STATE} as state, j.attempts, j.max_attempts as tries,
         j.run_at, j.created_at as enqueued_at, j.last_error as error
       from ${JOBS} j join ${TASKS} t on t.id = j.task_id
     ) jobs
     where state = coalesce($1, state) and name = coalesce($2, name)
     order by enqueued_at, id limit $3`,
    [state ?? null, name ?? null, limit],
  );

export const counts = (
  db: Queryable,
): Promise<{ name: string; state: JobState; count: number; oldest_seconds: number }[]> =>
  db.query(
    `select name, state, count(*) as count,
       greatest(0, extract(epoch from now() - min(run_at)))::float8 as oldest_seconds
     from (select t.identifier as name, ${STATE} as state, j.run_at
           from ${JOBS} j join ${TASKS} t on t.id = j.task_id) jobs
     group by name, state order by name, state`,
  );

/** Makes jobs ready with all their tries; running jobs are unaffected. Returns the number of changed jobs. */
export async function retry(db: Queryable, ids: readonly number[]): Promise<number> {
  const rows = await db.query(
    `select id from ${JOB_SCHEMA}.reschedule_jobs($1::bigint[], run_at => now(), attempts => 0)`,
    [ids],
  );
  return rows.length;
}

/** Deletes jobs; running jobs are unaffected. Returns the number of deleted jobs. */
export async function drop(db: Queryable, ids: readonly number[]): Promise<number> {
  return (await db.query(`select id from ${JOB_SCHEMA}.complete_jobs($1::bigint[])`, [ids])).length;
}

export async function cancel(tx: Queryable, owner: string): Promise<number> {
  const cancelled = await tx.query(
    `delete from ${JOBS}
     where flags ? '${OWNER}' and flags->>'${OWNER}' = $1 and locked_at is null and not flags ? '${INTERRUPTED}'
     returning 1 as one`,
    [owner],
  );
  return cancelled.length;
}

/** Keys that one statement deletes. */
const TRIMMED = 10_000;

export async function trim(db: Queryable): Promise<number> {
  for (let trimmed = 0; ;) {
    const rows = await db.query(
      `delete from finished_jobs where key in (select key from finished_jobs where kept_until < now() limit ${TRIMMED})
       returning 1 as one`,
    );
    trimmed += rows.length;
    if (rows.length < TRIMMED) return trimmed;
  }
}
