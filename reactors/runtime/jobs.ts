import { setMaxListeners } from 'node:events';
import type { JsonObject } from '../../lib/json/json';
import type { Enqueued, JobDeclaration, JobRequest } from '../../kernel/job';
import { murmur2 } from '../../lib/hash/murmur2';
import type { Pauses } from '../../lib/async/retry';
import { pause } from '../../lib/async/signal';
import type { JobQueue, NewJob } from '../../engines/jobs/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { NO_TRACING, type Tracing } from '../../engines/tracing/port';
import { jobMetrics } from './job-metrics';
import { createTries, type PayloadSealing, type RunningJob } from './job-tries';

export interface JobsDeps<Services> {
  queue: JobQueue;
  /** Database for enqueuing periodic jobs. */
  db: Database;
  declared: readonly JobDeclaration<Services>[];
  sealing: PayloadSealing;
  services: Services;
  /** Services of one job, besides {@link services}. */
  servicesOf?: (job: RunningJob) => Partial<Services>;
  log: Logger;
  metrics: Metrics;
  /** Default: off. */
  tracing?: Tracing;
  /** Concurrent jobs of this process without a lane. Default 10. */
  concurrency?: number;
  /** Concurrent jobs of this process with a lane. Default 40. */
  lane_concurrency?: number;
  /** Pauses between attempts. Default 10 s to six hours. */
  pauses?: Pauses;
}

export interface Jobs<Services> {
  /**
   * Enqueues jobs in the transaction that moves the caller's checkpoint. A {@link wake} after the commit saves up to
   * five seconds.
   * @throws Error when the payload does not match the declaration
   */
  enqueue<Payload>(
    tx: Queryable,
    declared: JobDeclaration<Services, Payload>,
    ...jobs: readonly Enqueued<Payload>[]
  ): Promise<void>;
  /** Enqueues jobs by name, for callers without the declarations. @throws Error for an undeclared name */
  enqueueNamed(tx: Queryable, requests: readonly JobRequest[]): Promise<void>;
  has(name: string): boolean;
  /** Deletes the waiting jobs of an owner. Returns their number. */
  cancel(tx: Queryable, owner: string): Promise<number>;
  wake(): void;
  /** Runs jobs in this process: all that are declared, or those of these names. */
  start(names?: readonly string[]): Promise<{ stop(): Promise<void> }>;
}

const DRAIN_MS = 6_000;
const OBSERVE_MS = 5_000;
/** A count reads every job, so it is repeated only after this multiple of its duration. */
const OBSERVE_SPARING = 50;
const PAUSES: Pauses = { first_ms: 10_000, most_ms: 6 * 3_600_000 };

/** Enqueues and runs the jobs of the areas. */
export function createJobs<Services>(deps: JobsDeps<Services>): Jobs<Services> {
  const { queue, db, sealing, services, log, tracing = NO_TRACING } = deps;
  const declared = new Map(deps.declared.map((one) => [one.name, one]));
  if (declared.size !== deps.declared.length) throw new Error('two jobs have one name');

  const stored = async <Payload>(
    { name, payload: schema, retries, after_unknown, every_ms, lane, owner }: JobDeclaration<Services, Payload>,
    { key: own, payload, run_at, expires_at }: Enqueued<Payload>,
  ): Promise<NewJob> => {
    const key = `${name}/${own}`;
    const { success, data, error } = schema.safeParse(payload);
    if (!success)
      throw new Error(`${name}: the payload does not fit: ${error.issues.map(({ path }) => path.join('.')).join()}`);
    return {
      name,
      key,
      payload: await sealing.seal(name, key, data as JsonObject),
      run_at,
      tries: retries + 1,
      after_unknown,
      lane: lane?.(data),
      owner: owner?.(data),
      expires_at,
      alone: every_ms !== undefined,
    };
  };

  const enqueue: Jobs<Services>['enqueue'] = async (tx, one, ...jobs) => {
    await queue.enqueue(tx, await Promise.all(jobs.map((each) => stored(one, each))));
  };

  return {
    enqueue,
    async enqueueNamed(tx, requests) {
      const jobs = requests.map(({ name, ...one }) => {
        const declaration = declared.get(name);
        if (declaration === undefined) throw new Error(`no job is named ${name}`);
        return stored(declaration, one);
      });
      await queue.enqueue(tx, await Promise.all(jobs));
    },
    has: (name) => declared.has(name),
    cancel: (tx, owner) => queue.cancel(tx, owner),
    wake: () => queue.wake(),
    async start(names = [...declared.keys()]) {
      const stopping = new AbortController();
      // Each periodic job adds a listener.
      setMaxListeners(names.length + 1, stopping.signal);
      const metrics = jobMetrics(deps.metrics);
      const attempt = createTries({
        declared,
        sealing,
        services,
        log,
        metrics,
        tracing,
        pauses: deps.pauses ?? PAUSES,
        enqueue: enqueue as Jobs<never>['enqueue'],
        wake: () => queue.wake(),
        servicesOf: deps.servicesOf,
      });
      const work = (of: readonly string[], concurrency: number) =>
        of.length === 0
          ? []
          : [queue.work({ names: of, concurrency, run: attempt, onReleased: (jobs) => metrics.released.inc(jobs) })];
      const has_lane = (name: string) => declared.get(name)?.lane !== undefined;
      const workers = await Promise.all([
        ...work(
          names.filter((name) => !has_lane(name)),
          deps.concurrency ?? 10,
        ),
        ...work(names.filter(has_lane), deps.lane_concurrency ?? 40),
      ]);
      const again = [...declared.values()].flatMap((one) =>
        one.every_ms === undefined || !names.includes(one.name) ? [] : [everyPeriod(one, one.every_ms)],
      );
      again.push(observe());

      /** Enqueues the job of each period; of several processes the first succeeds. */
      async function everyPeriod(one: JobDeclaration<Services>, every_ms: number): Promise<void> {
        const offset_ms = offsetOf(one.name, every_ms);
        while (!stopping.signal.aborted) {
          const now = Date.now();
          const begun = Math.floor((now - offset_ms) / every_ms) * every_ms + offset_ms;
          try {
            const job = await stored(one, { key: new Date(begun).toISOString(), payload: {} });
            if ((await db.transaction((tx) => queue.enqueue(tx, [job]))) > 0) queue.wake();
            await pause(begun + every_ms - now, stopping.signal);
          } catch (error) {
            log.warn({ err: error, job: one.name }, 'a periodic job could not be enqueued; it is tried again');
            await pause(OBSERVE_MS, stopping.signal);
          }
        }
      }

      async function observe(): Promise<void> {
        while (!stopping.signal.aborted) {
          const begun = performance.now();
          try {
            metrics.show(names, await queue.counts());
          } catch (error) {
            log.warn({ err: error }, 'jobs could not be counted');
          }
          const took_ms = performance.now() - begun;
          await pause(Math.max(OBSERVE_MS, OBSERVE_SPARING * took_ms), stopping.signal);
        }
      }

      return {
        async stop() {
          stopping.abort();
          await Promise.all([...workers.map((each) => each.stop(DRAIN_MS)), ...again]);
        },
      };
    },
  };
}

const HOUR_MS = 3_600_000;

/**
 * Milliseconds after midnight UTC (or the full hour) at which the periods of a job begin. Jobs differ, so that not all
 * upkeep coincides with nightly backups.
 */
const offsetOf = (name: string, every_ms: number): number =>
  every_ms < HOUR_MS ? 0 : (murmur2(Buffer.from(name)) >>> 0) % every_ms;
