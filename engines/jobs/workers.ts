import { setInterval } from 'node:timers';
import { Logger as LibraryLogger, runTaskList, type JobHelpers, type WorkerPool } from 'graphile-worker';
import { pause } from '../../lib/async/signal';
import type { Logger } from '../log/port';
import type { PostgresDatabase } from '../postgres/pool';
import { claimedJob, type JobRow } from './claimed';
import { laneIn } from './flags';
import { extendLocks, register, releaseDead, unregister, type LivingProcess } from './holders';
import { Lanes } from './lanes';
import { libraryPool } from './library-pool';
import { JOB_SCHEMA } from './names';
import type { JobWorkers, WorkOptions } from './port';

export interface WorkersDeps {
  db: PostgresDatabase;
  process: LivingProcess;
  log: Logger;
  /** Time for which a process may seem dead before its jobs are released. */
  grace_ms: number;
  /** Interval at which a process renews its registration and releases the jobs of dead ones. */
  beat_ms: number;
  poll_ms: number;
}

/**
 * Id that the library reads when a job has ended: no row has it. The library would end a job by its own id and the pool
 * alone, and release it while another worker of the pool runs its next try. Our ends are fenced by the try.
 */
const NO_JOB = '-1';

/** Thrown to the library after a job ended without success, so that it reports no success. */
class EndedByUs extends Error {}

const RESTART_MS = 1_000;
/** Most idle workers that search for jobs after a wake-up; each that finds one searches again. */
const MAX_NUDGED = 10;

/**
 * Runs jobs through the library's pool of workers, and makes a new pool when one ends unexpectedly. This process is
 * registered under each pool's name as the holder of its running jobs.
 */
export class Workers implements JobWorkers {
  private readonly running = new Map<string, AbortController>();
  private readonly lanes: Lanes;
  private readonly stopping = new AbortController();
  private pool: WorkerPool | undefined;
  private lost_at: number | null = null;
  private beating: Promise<void> | undefined;
  private readonly timer: NodeJS.Timeout;
  private readonly ended: Promise<void>;

  constructor(
    private readonly deps: WorkersDeps,
    private readonly options: WorkOptions,
  ) {
    this.lanes = new Lanes(options.concurrency);
    this.timer = setInterval(() => this.beat(), deps.beat_ms);
    this.timer.unref();
    this.ended = this.run();
  }

  nudge(): void {
    if (this.stopping.signal.aborted) return;
    try {
      this.pool?.nudge(Math.min(this.options.concurrency, MAX_NUDGED));
    } catch (error) {
      // The library throws for a pool that ends by itself; the next pool searches for jobs at its start.
      this.deps.log.debug({ err: error }, 'the workers of jobs are ending');
    }
  }

  async stop(drain_ms: number): Promise<void> {
    this.stopping.abort();
    const limit = setTimeout(() => this.abortAll(new Error('this process stops')), drain_ms);
    // The library waits for running jobs.
    await this.pool?.gracefulShutdown();
    await this.ended;
    clearTimeout(limit);
    clearInterval(this.timer);
  }

  private abortAll(reason: Error): void {
    for (const controller of this.running.values()) controller.abort(reason);
  }

  private async run(): Promise<void> {
    const { log } = this.deps;
    while (!this.stopping.signal.aborted) {
      try {
        const pool = this.open();
        await pool.promise;
        this.pool = undefined;
        // A beat under way may register the pool once more.
        await this.beating;
        await unregister(this.deps.db, pool.id);
      } catch (error) {
        log.warn({ err: error }, 'the workers of jobs ended badly');
      }
      this.pool = undefined;
      await pause(RESTART_MS, this.stopping.signal);
    }
  }

  private open(): WorkerPool {
    const { db, process, poll_ms } = this.deps;
    const { names, concurrency } = this.options;
    let known: Promise<void> | undefined;
    const pool: WorkerPool = runTaskList(
      {
        pgPool: db.pool,
        schema: JOB_SCHEMA,
        concurrency,
        pollInterval: poll_ms,
        noHandleSignals: true,
        forbiddenFlags: () => this.lanes.full(),
        logger: this.logger(),
        preset: {
          plugins: [
            {
              name: 'lumio-holders',
              version: '1.0.0',
              // Registers before the first job is taken; after a failure the next beat does.
              worker: { hooks: { startWorker: () => (known ??= register(db, pool.id, process.lock)) } },
            },
          ],
        },
      },
      Object.fromEntries(names.map((name) => [name, (_: unknown, { job }: JobHelpers) => this.work(pool, job)])),
      libraryPool(db.pool),
    );
    this.pool = pool;
    return pool;
  }

  private async work(pool: WorkerPool, job: JobHelpers['job']): Promise<void> {
    const row = job as unknown as JobRow;
    const ending = new AbortController();
    const id = String(row.id);
    this.running.set(id, ending);
    const lane = laneIn(row.flags);
    let entered = false;
    try {
      const held = claimedJob(row, { db: this.deps.db, pool: pool.id, signal: ending.signal });
      entered = lane !== undefined && this.lanes.enter(lane);
      if (lane !== undefined && !entered) {
        // Two workers searched before the lane was full.
        await held.giveBack();
        throw new EndedByUs();
      }
      let finished = false;
      const finish: typeof held.finish = async (...effect) => {
        const first = await held.finish(...effect);
        finished = true;
        return first;
      };
      await this.options.run({ ...held, finish });
      if (!finished) throw new EndedByUs();
    } finally {
      job.id = NO_JOB;
      if (entered) this.lanes.leave(lane!);
      this.running.delete(id);
    }
  }

  private beat(): void {
    const { process, grace_ms } = this.deps;
    this.lost_at = process.held ? null : (this.lost_at ?? performance.now());
    // Other processes will soon treat this one as dead: its jobs must have ended by then.
    if (this.lost_at !== null && performance.now() - this.lost_at >= grace_ms / 2) {
      this.abortAll(new Error('the database may take this process for dead'));
    }
    this.beating ??= this.look().finally(() => (this.beating = undefined));
  }

  /** Renews the registration while the process session stands, and releases the jobs of dead processes. */
  private async look(): Promise<void> {
    const { db, process, grace_ms, log } = this.deps;
    try {
      let released = await releaseDead(db, grace_ms);
      const { pool } = this;
      if (pool && process.held) {
        await register(db, pool.id, process.lock);
        released += await extendLocks(db, pool.id, [...this.running.keys()], grace_ms);
      }
      if (released > 0) {
        log.warn({ jobs: released }, 'jobs whose process died were released');
        this.options.onReleased?.(released);
        this.nudge();
      }
    } catch (error) {
      log.warn({ err: error }, 'the holders of jobs could not be looked at; it is tried again');
    }
  }

  /** Logger of the library without the ends of jobs: the caller logs these, without the payload. */
  private logger(): LibraryLogger {
    return new LibraryLogger(() => (level, message, meta) => {
      if (level !== 'error' && level !== 'warning') return;
      if (meta !== undefined && 'failure' in meta) return;
      this.deps.log.warn({ library: message }, 'the job library complains');
    });
  }
}
