import { retry } from '../../kernel/retry';
import type { JsonObject } from '../../kernel/json';
import { isPassing } from '../../kernel/failures';
import type { Database, Queryable } from '../postgres/port';
import { JOB_SCHEMA } from './names';
import { JobLost, type HeldJob } from './port';
import { UNKNOWN } from './rows';

const JOBS = `${JOB_SCHEMA}._private_jobs`;
/** How long an effect is tried for while the database seems away; then the job is tried again as a whole. */
const FINISH_WITHIN_MS = 60_000;
const LONGEST_ERROR = 1_000;
/** PostgreSQL's texts hold no NUL: a job whose end cannot be written because of one would be tried again. */
const written = (error: string): string => error.slice(0, LONGEST_ERROR).replaceAll('\0', '\ufffd');

/** What the library hands over of a job's row. */
export interface JobRow {
  id: string | number;
  key: string;
  task_identifier: string;
  payload: unknown;
  attempts: number;
  max_attempts: number;
}

export interface HeldBy {
  db: Database;
  /** What the library wrote into `locked_by`. */
  pool: string;
  signal: AbortSignal;
}

/**
 * A job that this process runs. Each end is fenced by `locked_by` and by the number of the try: one that was released
 * meanwhile is not ours to end, also when this process has taken it up again.
 * Ends are written here and not by the library, which would end a job in a transaction after its effect's.
 */
export function heldJob(row: JobRow, { db, pool, signal }: HeldBy): HeldJob {
  const { id, key, attempts: attempt } = row;
  const patiently = <T>(work: () => Promise<T>, within_ms?: number): Promise<T> =>
    retry(work, { passing: isPassing, first_ms: 100, most_ms: 5_000, within_ms });
  const isFinished = async (from: Queryable) =>
    (await from.query('select 1 as one from finished_jobs where key = $1', [key])).length === 1;

  /** Lets go of the job under new facts about it. */
  const letGo = (set: string, values: readonly unknown[]): Promise<{ attempts: number; max_attempts: number }> =>
    patiently(async () => {
      const [job] = await db.query<{ attempts: number; max_attempts: number }>(
        `update ${JOBS} set locked_at = null, locked_by = null, updated_at = now(), ${set}
         where id = $1 and locked_by = $2 and attempts = $3 returning attempts, max_attempts`,
        [id, pool, attempt, ...values],
      );
      if (job === undefined) throw new JobLost(key);
      return job;
    });
  const lastly = (error: string) =>
    letGo('attempts = max_attempts, last_error = $4', [written(error)]).then(() => undefined);

  return {
    name: row.task_identifier,
    key,
    payload: (typeof row.payload === 'string' ? JSON.parse(row.payload) : row.payload) as JsonObject,
    attempt,
    tries: row.max_attempts,
    signal,
    finishedBefore: () => patiently(() => isFinished(db)),
    finish: (effect, keep_ms) =>
      patiently(
        () =>
          db.transaction(async (tx) => {
            const ours = await tx.query(
              `delete from ${JOBS} where id = $1 and locked_by = $2 and attempts = $3 returning 1 as one`,
              [id, pool, attempt],
            );
            if (ours.length === 0) {
              // The commit of a try before this one was made, and only its answer got lost.
              if (await isFinished(tx)) return false;
              throw new JobLost(key);
            }
            const first = await tx.query(
              `insert into finished_jobs (key, kept_until) values ($1, now() + $2 * interval '1 millisecond')
             on conflict do nothing returning 1 as one`,
              [key, keep_ms ?? null],
            );
            if (first.length === 0) return false;
            await effect?.(tx);
            return true;
          }),
        FINISH_WITHIN_MS,
      ),
    async again(error, pause_ms) {
      const { attempts, max_attempts } = await letGo(
        `last_error = $4, run_at = now() + $5 * interval '1 millisecond'`,
        [written(error), pause_ms],
      );
      return attempts >= max_attempts ? 'failed' : 'again';
    },
    fail: (error) => lastly(error),
    park: (error) => lastly(`${UNKNOWN}${error}`),
    giveBack: () => letGo('attempts = greatest(attempts - 1, 0)', []).then(() => undefined),
  };
}
