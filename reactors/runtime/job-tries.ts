import type { JsonObject } from '../../lib/json/json';
import { JobRefused, NotSent, OutcomeUnknown, type Effect, type JobDeclaration } from '../../kernel/job';
import { Backoff, type Pauses } from '../../lib/async/retry';
import { pause } from '../../lib/async/signal';
import { JobLost, type HeldJob } from '../../engines/jobs/port';
import type { Logger } from '../../engines/log/port';
import type { Queryable } from '../../engines/postgres/port';
import type { Tracing } from '../../engines/tracing/port';
import type { JobMetrics } from './job-metrics';
import type { Jobs } from './jobs';

/** Encrypts and decrypts personal members of payloads; null after the erasure of the subject's key. */
export interface PayloadSealing {
  seal(name: string, key: string, payload: JsonObject): Promise<JsonObject>;
  open(name: string, key: string, stored: JsonObject): Promise<JsonObject>;
}

/** Pauses between attempts of a periodic job: short, because the next period enqueues it again anyway. */
const PERIODIC_PAUSES: Pauses = { first_ms: 1_000, most_ms: 60_000 };
/** Number of further periods for which a finished one is kept. */
const PERIODS_KEPT = 3;

export interface TriesDeps<Services> {
  declared: ReadonlyMap<string, JobDeclaration<Services>>;
  sealing: PayloadSealing;
  services: Services;
  log: Logger;
  metrics: JobMetrics;
  tracing: Tracing;
  pauses: Pauses;
  enqueue: Jobs<never>['enqueue'];
  /** To be called after the commit of enqueued jobs. */
  wake(): void;
  servicesOf?: ((job: RunningJob) => Partial<Services>) | undefined;
}

/** Identity of a running job: its key is the same over all tries. */
export type RunningJob = Pick<HeldJob, 'name' | 'key' | 'enqueued_at'>;

/**
 * `repeated`: its key was finished before; `expired`: its time was over; `cancelled`: its owner does not want it any
 * more; `unknown`: ended by its own effect for unknown outcomes; `returned`: this process stops; `lost`: another
 * process has it.
 */
type Outcome =
  'done' | 'repeated' | 'expired' | 'cancelled' | 'unknown' | 'again' | 'failed' | 'parked' | 'returned' | 'lost';

/** Runs one attempt of a job. */
export function createTries<Services>(deps: TriesDeps<Services>): (held: HeldJob) => Promise<void> {
  const { declared, sealing, log, metrics, tracing } = deps;

  async function payloadOf(one: JobDeclaration<Services>, held: HeldJob): Promise<unknown> {
    const clear = await sealing.open(one.name, held.key, held.payload);
    const { success, data } = one.payload.safeParse(clear);
    if (!success) throw new UnreadablePayload();
    return data;
  }

  /**
   * Runs the job. For a non-repeatable job every error counts as an unknown outcome, unless it states that nothing was
   * done.
   */
  async function effectOf(
    one: JobDeclaration<Services>,
    payload: unknown,
    try_: Try<Services>,
  ): Promise<Effect | void> {
    const { held, signal, services } = try_;
    try {
      return await one.run(payload, { key: held.key, number: held.attempt, signal }, services);
    } catch (error) {
      const has_known_outcome = [NotSent, JobRefused, OutcomeUnknown].some((kind) => error instanceof kind);
      throw has_known_outcome || one.after_unknown === 'repeat'
        ? error
        : unknown(error, `nobody knows what it did: ${describe(one, error)}`);
    }
  }

  /** Ends the job with its effect; false when its key was finished before. */
  async function finish(one: JobDeclaration<Services>, held: HeldJob, effect: Effect | void): Promise<boolean> {
    const keep_ms = one.every_ms === undefined ? undefined : one.every_ms * PERIODS_KEPT;
    let enqueued = false;
    const run = effect
      ? (tx: Queryable) =>
          effect(tx, {
            async enqueue(declaration, ...jobs) {
              await deps.enqueue(tx, declaration, ...jobs);
              enqueued = true;
            },
          })
      : undefined;
    const first = await held.finish(run, keep_ms);
    if (enqueued) deps.wake();
    return first;
  }

  async function work(one: JobDeclaration<Services>, held: HeldJob): Promise<Outcome> {
    if (await held.finishedBefore()) {
      await held.finish();
      return 'repeated';
    }
    if (!held.interrupted && isExpired(held, Date.now())) {
      await held.finish();
      return 'expired';
    }
    const signal = AbortSignal.any([held.signal, AbortSignal.timeout(one.timeout_ms)]);
    const services = { ...deps.services, ...deps.servicesOf?.(held) };
    const try_ = { held, signal, services };
    let payload: unknown;
    let effect: Effect | void;
    let may_have_called = false;
    try {
      payload = await payloadOf(one, held);
      may_have_called = held.interrupted;
      if (held.interrupted) throw unknown(undefined, 'an earlier try was cut off');
      if ((await one.isWanted?.(payload, services)) === false) {
        await held.finish();
        return 'cancelled';
      }
      if (signal.aborted) throw new NotSent('the time of the try was over before its call');
      may_have_called = true;
      effect = await unlessLeft(effectOf(one, payload, try_), held.signal);
    } catch (error) {
      return failed(one, { ...try_, may_have_called }, payload, error);
    }
    try {
      return (await finish(one, held, effect)) ? 'done' : 'repeated';
    } catch (error) {
      // The vendor was called: the next attempt calls it again under the same key.
      if (error instanceof JobLost) throw error;
      const failure = one.after_unknown === 'repeat' ? error : unknown(error, NOT_STORED);
      return failed(one, { ...try_, may_have_called }, payload, failure);
    }
  }

  async function failed(
    one: JobDeclaration<Services>,
    { held, signal, services, may_have_called }: Try<Services> & { may_have_called: boolean },
    payload: unknown,
    error: unknown,
  ): Promise<Outcome> {
    const text = describe(one, error);
    log.warn({ job: one.name, key: held.key, attempt: held.attempt, error: text }, 'a job failed');
    const is_known =
      !may_have_called || (!(error instanceof OutcomeUnknown) && (!signal.aborted || error instanceof NotSent));
    if (!is_known && one.after_unknown === 'park') {
      await held.park(text);
      return 'parked';
    }
    if (!is_known && one.onUnknown !== undefined) {
      return (await finish(one, held, one.onUnknown(payload, services))) ? 'unknown' : 'repeated';
    }
    if (error instanceof JobRefused) {
      await held.fail(text);
      return 'failed';
    }
    if (held.signal.aborted) {
      await held.giveBack();
      return 'returned';
    }
    const pauses = one.pauses ?? (one.every_ms === undefined ? deps.pauses : PERIODIC_PAUSES);
    const pause_ms = Math.max(askedFor(error) ?? 0, new Backoff(pauses, held.attempt - 1).next());
    if (isExpired(held, Date.now() + pause_ms)) {
      await held.finish();
      return 'expired';
    }
    return held.again(text, pause_ms);
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

/** A running try. */
interface Try<Services> {
  held: HeldJob;
  /** Aborted when the time of the try is over, and with the signal of the held job. */
  signal: AbortSignal;
  services: Services;
}

const isExpired = ({ expires_at }: HeldJob, at: number): boolean => expires_at !== null && Date.parse(expires_at) <= at;

/** Time for a job that ignores its signal, out of the 9 s that a stopping process has. */
const LET_GO_MS = 1_000;

/**
 * Returns the result of `work`. When `stop` is aborted and the work does not end soon after, the work is abandoned: its
 * job is given back, and the job's fence refuses later writes.
 */
async function unlessLeft<T>(work: Promise<T>, stop: AbortSignal): Promise<T> {
  const over = new AbortController();
  const left = async (): Promise<never> => {
    await pause(Infinity, AbortSignal.any([stop, over.signal]));
    await pause(LET_GO_MS, over.signal);
    throw new Error('it ignored its signal and was left behind');
  };
  work.catch(() => undefined);
  try {
    return await Promise.race([work, left()]);
  } finally {
    over.abort();
  }
}

const NOT_STORED = 'done outside, and its effect here could not be stored';
const unknown = (error: unknown, what: string) => new OutcomeUnknown(what, { cause: error });

/** Minimum delay that the vendor requested: an error's own `retry_after_ms`. */
function askedFor(error: unknown): number | undefined {
  const asked = (error as { retry_after_ms?: unknown }).retry_after_ms;
  return typeof asked === 'number' && asked >= 0 ? asked : undefined;
}

/**
 * Text of an error. A message may quote the payload, so for jobs with personal members only the error's kind is kept.
 */
function describe({ personal }: JobDeclaration<never>, error: unknown): string {
  if (!(error instanceof Error)) return 'no error';
  const quiet = Object.keys(personal).length > 0 && !(error instanceof OutcomeUnknown || error instanceof JobRefused);
  return quiet ? error.name : `${error.name}: ${error.message}`;
}

/**
 * A payload of a newer release, or of an older one that this release should read: retried, since a worker of that
 * release may take it.
 */
class UnreadablePayload extends Error {
  constructor() {
    super('the payload is not what this build declares');
    this.name = 'UnreadablePayload';
  }
}
