import { retry } from '../../lib/async/retry';
import type { JsonObject } from '../../lib/json/json';
import { isPassing } from '../../kernel/failures';
import type { Database, Queryable } from '../postgres/port';
import { JOB_SCHEMA } from './names';
import { JobLost, type HeldJob } from './port';
import { EXPIRES_AT, INTERRUPTED } from './flags';
import { UNKNOWN } from './rows';

const JOBS = `${JOB_SCHEMA}._private_jobs`;
/** Time for which an effect is retried while the database seems unavailable; then the whole job is tried again. */
const FINISH_WITHIN_MS = 60_000;
/** Time for which the key of a finished job is kept. */
const KEEP_MS = 7 * 86_400_000;
const LONGEST_ERROR = 1_000;
/** Error text without NUL, because PostgreSQL refuses NUL and a job whose end cannot be written is tried again. */
const written = (error: string): string => error.slice(0, LONGEST_ERROR).replaceAll('\0', '\ufffd');

/** Columns of a job's row that the library passes on. */
export interface JobRow {
  id: string | number;
  key: string;
  task_identifier: string;
  payload: unknown;
  attempts: number;
  max_attempts: number;
  created_at: Date | string;
  flags: Readonly<Record<string, unknown>> | null;
}

export interface HeldBy {
  db: Database;
  /** Value that the library wrote into `locked_by`. */
  pool: string;
  signal: AbortSignal;
}

/**
 * A job that this process runs. Each end is fenced by `locked_by` and the number of the try, so that a job that was
 * released meanwhile cannot be ended, also when this process has taken it again. Ends are not written by the library,
 * which would end a job in a transaction after that of its effect.
 */
export function claimedJob(row: JobRow, { db, pool, signal }: HeldBy): HeldJob {
  const { id, key, attempts: attempt } = row;
  const withPatience = <T>(work: () => Promise<T>, within_ms?: number): Promise<T> =>
    retry(work, { passing: isPassing, first_ms: 100, most_ms: 5_000, within_ms });
  const isFinished = async (from: Queryable) =>
    (await from.query('select 1 as one from finished_jobs where key = $1', [key])).length === 1;

  /** Unlocks the job and sets columns of its row. @throws JobLost */
  const release = (set: string, values: readonly unknown[]): Promise<{ attempts: number; max_attempts: number }> =>
    withPatience(async () => {
      const [job] = await db.query<{ attempts: number; max_attempts: number }>(
        `update ${JOBS} set locked_at = null, locked_by = null, updated_at = now(), ${set}
         where id = $1 and locked_by = $2 and attempts = $3 returning attempts, max_attempts`,
        [id, pool, attempt, ...values],
      );
      if (job === undefined) throw new JobLost(key);
      return job;
    });
  const failPermanently = (error: string) =>
    release('attempts = max_attempts, last_error = $4', [written(error)]).then(() => undefined);

  return {
    name: row.task_identifier,
    key,
    payload: (typeof row.payload === 'string' ? JSON.parse(row.payload) : row.payload) as JsonObject,
    attempt,
    tries: row.max_attempts,
    enqueued_at: new Date(row.created_at).toISOString(),
    expires_at: (row.flags?.[EXPIRES_AT] as string | undefined) ?? null,
    interrupted: row.flags?.[INTERRUPTED] === true,
    signal,
    finishedBefore: () => withPatience(() => isFinished(db)),
    finish: (effect, keep_ms = KEEP_MS) =>
      withPatience(
        () =>
          db.transaction(async (tx) => {
            const ours = await tx.query(
              `delete from ${JOBS} where id = $1 and locked_by = $2 and attempts = $3 returning 1 as one`,
              [id, pool, attempt],
            );
            if (ours.length === 0) {
              // The commit of an earlier call succeeded, and only its answer was lost.
              if (await isFinished(tx)) return false;
              throw new JobLost(key);
            }
            const first = await tx.query(
              `insert into finished_jobs (key, kept_until) values ($1, now() + $2 * interval '1 millisecond')
             on conflict do nothing returning 1 as one`,
              [key, keep_ms],
            );
            if (first.length === 0) return false;
            await effect?.(tx);
            return true;
          }),
        FINISH_WITHIN_MS,
      ),
    async again(error, pause_ms) {
      const { attempts, max_attempts } = await release(
        `last_error = $4, run_at = now() + $5 * interval '1 millisecond'`,
        [written(error), pause_ms],
      );
      return attempts >= max_attempts ? 'failed' : 'again';
    },
    fail: (error) => failPermanently(error),
    park: (error) => failPermanently(`${UNKNOWN}${error}`),
    giveBack: () => release('attempts = greatest(attempts - 1, 0)', []).then(() => undefined),
  };
}
