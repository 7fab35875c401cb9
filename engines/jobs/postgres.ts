import type { Logger } from '../log/port';
import type { PostgresDatabase } from '../postgres/pool';
import type { Wakeups } from '../wakeups/port';
import type { LivingProcess } from './holders';
import { JOBS_WAKEUP, type JobQueue } from './port';
import { cancel, counts, drop, enqueue, list, retry, trim } from './rows';

export interface PostgresJobsOptions {
  /** Database of the workers: a transaction for the end of each job, and one connection that listens. */
  db: PostgresDatabase;
  wakeups: Wakeups;
  process: LivingProcess;
  log: Logger;
  /** Time for which a process may seem dead before its jobs are released. Default 20 s. */
  grace_ms?: number;
  /** Default 5 s. With the pauses of the process session, a killed process's jobs are released within 40 s. */
  beat_ms?: number;
  /** Interval of the search for jobs without a wake-up. Default 5 s. */
  poll_ms?: number;
}

/** Jobs through graphile-worker in our database. Decision 0018. */
export function createPostgresJobs(options: PostgresJobsOptions): JobQueue {
  const { db, wakeups, process, log, grace_ms = 20_000, beat_ms = 5_000, poll_ms = 5_000 } = options;
  return {
    enqueue,
    cancel,
    wake: () => wakeups.notify(JOBS_WAKEUP),
    list: (filter) => list(db, filter),
    counts: () => counts(db),
    retry: (ids) => retry(db, ids),
    drop: (ids) => drop(db, ids),
    trim: () => trim(db),
    async work(work) {
      await process.ready();
      // Only processes that run jobs load the library, which searches for settings files at its start.
      // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would be loaded by all
      const { Workers } = require('./workers') as typeof import('./workers');
      const workers = new Workers({ db, process, log, grace_ms, beat_ms, poll_ms }, work);
      const deaf = wakeups.on(JOBS_WAKEUP, () => workers.nudge());
      return {
        async stop(drain_ms) {
          deaf();
          await workers.stop(drain_ms);
        },
      };
    },
  };
}
