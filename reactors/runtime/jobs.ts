import type { JsonObject } from '../../kernel/json';
import {
  JobRefused,
  NotSent,
  OutcomeUnknown,
  type Effect,
  type Enqueued,
  type JobDeclaration,
  type JobRequest,
} from '../../kernel/job';
import { Backoff, type Pauses } from '../../kernel/retry';
import { pause } from '../../kernel/signal';
import { JOB_STATES, JobLost, type HeldJob, type JobQueue, type NewJob } from '../../engines/jobs/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { NO_TRACING, type Tracing } from '../../engines/tracing/port';

/** Personal members of payloads, encrypted and read again; null where the subject's key was erased. */
export interface PayloadSealing {
  seal(name: string, key: string, payload: JsonObject): Promise<JsonObject>;
  open(name: string, key: string, stored: JsonObject): Promise<JsonObject>;
}

export interface JobsDeps<Services> {
  queue: JobQueue;
  /** For jobs that are made anew in every period. */
  db: Database;
  declared: readonly JobDeclaration<Services>[];
  sealing: PayloadSealing;
  services: Services;
  log: Logger;
  metrics: Metrics;
  /** Default: off. */
  tracing?: Tracing;
  /** Jobs at a time in this process. Default 10. */
  concurrency?: number;
  /** Pauses between tries. Default 10 s to six hours. */
  pauses?: Pauses;
}

export interface Jobs<Services> {
  /**
   * In the transaction that moves the caller's checkpoint. After the commit {@link wake} spares up to five seconds.
   * @throws Error when the payload is not what the declaration says
   */
  enqueue<Payload>(
    tx: Queryable,
    declared: JobDeclaration<Services, Payload>,
    ...jobs: readonly Enqueued<Payload>[]
  ): Promise<void>;
  /** The same by names, for who cannot see the declarations. @throws Error for a name that nobody has declared */
  enqueueNamed(tx: Queryable, requests: readonly JobRequest[]): Promise<void>;
  has(name: string): boolean;
  wake(): void;
  /** Runs jobs in this process: all that are declared, or those of these names. */
  start(names?: readonly string[]): Promise<{ stop(): Promise<void> }>;
}

const DRAIN_MS = 6_000;
const OBSERVE_MS = 5_000;
/** A count reads every job that is kept: it is made again only after this many times as long as it took. */
const OBSERVE_SPARING = 50;
const PAUSES: Pauses = { first_ms: 10_000, most_ms: 6 * 3_600_000 };
/** Of jobs that are made anew anyway. */
const PERIODIC_PAUSES: Pauses = { first_ms: 1_000, most_ms: 60_000 };
/** A period is remembered as done for this many periods. */
const PERIODS_KEPT = 3;
const SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300];

/** Enqueues and runs what the areas declare as jobs. */
export function createJobs<Services>(deps: JobsDeps<Services>): Jobs<Services> {
  const { queue, db, sealing, services, log, tracing = NO_TRACING } = deps;
  const declared = new Map(deps.declared.map((one) => [one.name, one]));
  if (declared.size !== deps.declared.length) throw new Error('two jobs have one name');

  const stored = async <Payload>(
    { name, payload: schema, retries, after_unknown, every_ms }: JobDeclaration<Services, Payload>,
    { key: own, payload, run_at }: Enqueued<Payload>,
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
      park: after_unknown === 'park',
      alone: every_ms !== undefined,
    };
  };

  return {
    async enqueue(tx, one, ...jobs) {
      await queue.enqueue(tx, await Promise.all(jobs.map((each) => stored(one, each))));
    },
    async enqueueNamed(tx, requests) {
      const jobs = requests.map(({ name, ...one }) => {
        const declaration = declared.get(name);
        if (declaration === undefined) throw new Error(`no job is named ${name}`);
        return stored(declaration, one);
      });
      await queue.enqueue(tx, await Promise.all(jobs));
    },
    has: (name) => declared.has(name),
    wake: () => queue.wake(),
    async start(names = [...declared.keys()]) {
      const stopping = new AbortController();
      const metrics = jobMetrics(deps.metrics);
      const runner = createRunner({
        declared,
        sealing,
        services,
        log,
        metrics,
        tracing,
        pauses: deps.pauses ?? PAUSES,
      });
      const workers = await queue.work({
        names,
        concurrency: deps.concurrency ?? 10,
        run: runner,
        onReleased: (jobs) => metrics.released.inc(jobs),
      });
      const again = [...declared.values()].flatMap((one) =>
        one.every_ms === undefined || !names.includes(one.name) ? [] : [everyPeriod(one, one.every_ms)],
      );
      again.push(observe());

      /** Makes the job of each period; of several processes the first does. */
      async function everyPeriod(one: JobDeclaration<Services>, every_ms: number): Promise<void> {
        while (!stopping.signal.aborted) {
          const now = Date.now();
          const begun = Math.floor(now / every_ms) * every_ms;
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
          await Promise.all([workers.stop(DRAIN_MS), ...again]);
        },
      };
    },
  };
}

interface RunnerDeps<Services> {
  declared: ReadonlyMap<string, JobDeclaration<Services>>;
  sealing: PayloadSealing;
  services: Services;
  log: Logger;
  metrics: JobMetrics;
  tracing: Tracing;
  pauses: Pauses;
}

/** `repeated`: its key had been finished before; `returned`: this process stops; `lost`: another process has it. */
type Outcome = 'done' | 'repeated' | 'again' | 'failed' | 'parked' | 'returned' | 'lost';

/** One try of a job, from its payload to its end. */
function createRunner<Services>(deps: RunnerDeps<Services>): (held: HeldJob) => Promise<void> {
  const { declared, sealing, services, log, metrics, tracing } = deps;

  async function payloadOf(one: JobDeclaration<Services>, held: HeldJob): Promise<unknown> {
    const clear = await sealing.open(one.name, held.key, held.payload);
    const { success, data } = one.payload.safeParse(clear);
    if (!success) throw new UnreadablePayload();
    return data;
  }

  /** Of a job that must not be repeated, what it throws says that nothing was done only where it says just that. */
  async function effectOf(
    one: JobDeclaration<Services>,
    payload: unknown,
    held: HeldJob,
    signal: AbortSignal,
  ): Promise<Effect | void> {
    try {
      return await one.run(payload, { key: held.key, number: held.attempt, signal }, services);
    } catch (error) {
      const told = [NotSent, JobRefused, OutcomeUnknown].some((kind) => error instanceof kind);
      throw told || one.after_unknown === 'repeat'
        ? error
        : unknown(error, `nobody knows what it did: ${describe(one, error)}`);
    }
  }

  async function work(one: JobDeclaration<Services>, held: HeldJob): Promise<Outcome> {
    if (await held.finishedBefore()) {
      await held.finish();
      return 'repeated';
    }
    const signal = AbortSignal.any([held.signal, AbortSignal.timeout(one.timeout_ms)]);
    let effect: Effect | void;
    try {
      effect = await effectOf(one, await payloadOf(one, held), held, signal);
    } catch (error) {
      return failed(one, held, error, signal);
    }
    try {
      const keep_ms = one.every_ms === undefined ? undefined : one.every_ms * PERIODS_KEPT;
      return (await held.finish(effect ?? undefined, keep_ms)) ? 'done' : 'repeated';
    } catch (error) {
      // What was done outside has been done: the next try does it under the same key.
      if (error instanceof JobLost) throw error;
      return failed(one, held, one.after_unknown === 'park' ? unknown(error, NOT_STORED) : error, signal);
    }
  }

  async function failed(
    one: JobDeclaration<Services>,
    held: HeldJob,
    error: unknown,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const said = describe(one, error);
    log.warn({ job: one.name, key: held.key, attempt: held.attempt, error: said }, 'a job failed');
    const known = !(error instanceof OutcomeUnknown) && (!signal.aborted || error instanceof NotSent);
    if (!known && one.after_unknown === 'park') {
      await held.park(said);
      return 'parked';
    }
    if (error instanceof JobRefused) {
      await held.fail(said);
      return 'failed';
    }
    if (held.signal.aborted) {
      await held.giveBack();
      return 'returned';
    }
    const pauses = one.every_ms === undefined ? deps.pauses : PERIODIC_PAUSES;
    return held.again(said, Math.max(askedFor(error) ?? 0, pauseAfter(held.attempt, pauses)));
  }

  return async (held) => {
    const one = declared.get(held.name)!;
    const begun = performance.now();
    const span = tracing.start(`job ${held.name}`, { kind: 'consumer', attributes: { attempt: held.attempt } });
    let outcome: Outcome = 'lost';
    let failure: unknown;
    try {
      outcome = await work(one, held);
    } catch (error) {
      failure = error;
      log.warn({ job: held.name, key: held.key, err: error }, 'the end of a job could not be written; it is released');
    } finally {
      span.set({ outcome });
      span.end(failure);
      metrics.seconds.observe((performance.now() - begun) / 1000, { name: held.name, outcome });
    }
  };
}

const NOT_STORED = 'done outside, and its effect here could not be stored';
const unknown = (error: unknown, what: string) => new OutcomeUnknown(what, { cause: error });

/** Growing, with jitter. */
function pauseAfter(attempt: number, { first_ms, most_ms }: Pauses): number {
  const longest = Math.min(first_ms * 2 ** Math.min(attempt - 1, 30), most_ms);
  return new Backoff({ first_ms: longest, most_ms }).next();
}

/** What the other side asked for at least: an error's own `retry_after_ms`. */
function askedFor(error: unknown): number | undefined {
  const asked = (error as { retry_after_ms?: unknown }).retry_after_ms;
  return typeof asked === 'number' && asked >= 0 ? asked : undefined;
}

/** A message may quote the payload, so of jobs with personal members only the error's kind is kept. */
function describe({ personal }: JobDeclaration<never>, error: unknown): string {
  if (!(error instanceof Error)) return 'no error';
  const quiet = Object.keys(personal).length > 0 && !(error instanceof OutcomeUnknown || error instanceof JobRefused);
  return quiet ? error.name : `${error.name}: ${error.message}`;
}

/**
 * Of a newer build, or of one whose payloads this one should still read: tried again, since a worker of it may come.
 */
class UnreadablePayload extends Error {
  constructor() {
    super('the payload is not what this build declares');
    this.name = 'UnreadablePayload';
  }
}

interface JobMetrics {
  seconds: ReturnType<Metrics['histogram']>;
  released: ReturnType<Metrics['counter']>;
  show(names: readonly string[], counts: readonly Awaited<ReturnType<JobQueue['counts']>>[number][]): void;
}

function jobMetrics(metrics: Metrics): JobMetrics {
  const jobs = metrics.gauge('lumio_jobs', 'Jobs by state', ['name', 'state']);
  const late = metrics.gauge('lumio_jobs_ready_seconds', 'How long the first job that could run has waited', ['name']);
  return {
    seconds: metrics.histogram('lumio_jobs_run_seconds', 'Duration of one try of a job', SECONDS, ['name', 'outcome']),
    released: metrics.counter('lumio_jobs_released_total', 'Jobs released because their process died'),
    show(names, counts) {
      for (const name of new Set([...names, ...counts.map((one) => one.name)])) {
        const own = counts.filter((one) => one.name === name);
        for (const state of JOB_STATES) {
          jobs.set(own.find((one) => one.state === state)?.count ?? 0, { name, state });
        }
        late.set(own.find(({ state }) => state === 'ready')?.oldest_seconds ?? 0, { name });
      }
    },
  };
}
