import type { JsonObject } from '../../kernel/json';
import { JobRefused, NotSent, OutcomeUnknown, type Effect, type JobDeclaration } from '../../kernel/job';
import { Backoff, type Pauses } from '../../kernel/retry';
import { JobLost, type HeldJob } from '../../engines/jobs/port';
import type { Logger } from '../../engines/log/port';
import type { Tracing } from '../../engines/tracing/port';
import type { JobMetrics } from './job-metrics';

/** Personal members of payloads, encrypted and read again; null where the subject's key was erased. */
export interface PayloadSealing {
  seal(name: string, key: string, payload: JsonObject): Promise<JsonObject>;
  open(name: string, key: string, stored: JsonObject): Promise<JsonObject>;
}

/** Pauses between tries of a periodic job: short ones, since the next period makes it anew anyway. */
const PERIODIC_PAUSES: Pauses = { first_ms: 1_000, most_ms: 60_000 };
/** For how many further periods it is remembered that one is done. */
const PERIODS_KEPT = 3;

export interface TriesDeps<Services> {
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
export function createTries<Services>(deps: TriesDeps<Services>): (held: HeldJob) => Promise<void> {
  const { declared, sealing, services, log, metrics, tracing } = deps;

  async function payloadOf(one: JobDeclaration<Services>, held: HeldJob): Promise<unknown> {
    const clear = await sealing.open(one.name, held.key, held.payload);
    const { success, data } = one.payload.safeParse(clear);
    if (!success) throw new UnreadablePayload();
    return data;
  }

  /** Where a job must not be repeated, every error that does not say that nothing was done counts as unknown. */
  async function effectOf(
    one: JobDeclaration<Services>,
    payload: unknown,
    held: HeldJob,
    signal: AbortSignal,
  ): Promise<Effect | void> {
    try {
      return await one.run(payload, { key: held.key, number: held.attempt, signal }, services);
    } catch (error) {
      const outcome_told = [NotSent, JobRefused, OutcomeUnknown].some((kind) => error instanceof kind);
      throw outcome_told || one.after_unknown === 'repeat'
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
      // The call outside was made: the next try makes it again, under the same key.
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
    const pause_ms = new Backoff(pauses, held.attempt - 1).next();
    return held.again(said, Math.max(askedFor(error) ?? 0, pause_ms));
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
