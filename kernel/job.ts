import { z } from 'zod';
import type { Queryable } from '../engines/postgres/port';
import type { Pauses } from '../lib/async/retry';
import type { SubjectOf } from './event';

/** Tools of an effect. */
export interface EffectTools {
  /** Enqueues jobs in the transaction of the effect. */
  enqueue<Payload>(declared: JobDeclaration<never, Payload>, ...jobs: readonly Enqueued<Payload>[]): Promise<void>;
}

/**
 * Effect of a job in our database. It runs in the transaction that ends the job, so that it happens exactly once
 * however often the job was tried.
 */
export type Effect = (tx: Queryable, tools: EffectTools) => Promise<unknown>;

/** A try of a job. */
export interface JobTry {
  /** Idempotency key towards the called side, equal over all tries. Never a secret, nothing personal. */
  readonly key: string;
  /** 1 for the first. */
  readonly number: number;
  /** Aborted when the time of the try is over, when this process stops, and when it may have been taken for dead. */
  readonly signal: AbortSignal;
}

/** A piece of work that waits, repeats or calls the outside. Source: design §5. */
export interface JobDeclaration<Services = unknown, Payload = unknown> {
  readonly kind: 'job';
  /** Of letters and hyphens; stored with each job, so it is never given another meaning. */
  readonly name: string;
  readonly payload: z.ZodType<Payload>;
  /**
   * Members of the payload that are personal, and whose they are: stored under that person's key, null once it was
   * erased.
   */
  readonly personal: Readonly<Record<string, SubjectOf>>;
  /** Tries after the first before the job is left to an operator as failed. */
  readonly retries: number;
  /**
   * Treatment of a try whose effect outside is unknown, because the process died or no answer came: `repeat` where the
   * other side knows our key or the call bears repeating, `park` where an operator must decide, `end` where
   * {@link onUnknown} decides.
   */
  readonly after_unknown: 'repeat' | 'park' | 'end';
  /** Effect that ends a job of `end` whose outcome is unknown. The call is not repeated. */
  onUnknown?(payload: Payload, services: Services): Effect;
  /** Pauses between tries. Default: 10 s to six hours. */
  readonly pauses?: Pauses;
  /** Account and destination of the call. A process runs at most four jobs of a lane at a time. Nothing personal. */
  lane?(payload: Payload): string;
  /** The thing whose end cancels the job's waiting tries; undefined for a payload without one. Nothing personal. */
  owner?(payload: Payload): string | undefined;
  /** Whether the owner still wants the job; checked before each try. Without it, the job is cancelled. */
  isWanted?(payload: Payload, services: Services): Promise<boolean>;
  /** Milliseconds that one try may take. */
  readonly timeout_ms: number;
  /** Present on a periodic job: it is made once in every period of this length, and once at the first start. */
  readonly every_ms?: number;
  /**
   * Calls the outside; what it returns is done in our database. {@link OutcomeUnknown} says that a call may have been
   * done; of a job that does not repeat every other error says so too, but for {@link NotSent} and {@link JobRefused}.
   */
  run(payload: Payload, attempt: JobTry, services: Services): Promise<Effect | void>;
}

export type JobOptions<Services, Shape extends z.ZodRawShape> = {
  /** Every member. A later release must read the payloads that this one stored. */
  payload: Shape;
  personal?: JobDeclaration['personal'];
  /** Default 12: with growing pauses that is about half a day. */
  retries?: number;
  /** Default one minute. */
  timeout_ms?: number;
} & Pick<
  JobDeclaration<Services, z.output<z.ZodObject<Shape, z.core.$strict>>>,
  'name' | 'after_unknown' | 'run' | 'onUnknown' | 'pauses' | 'lane' | 'owner' | 'isWanted'
>;

const NAME = /^[a-z][a-z0-9-]{0,60}$/;
const MINUTE_MS = 60_000;

/**
 * Declares a job of an area. Reactors and projections enqueue it in the transaction that moves their checkpoint.
 * @throws Error when the name is malformed, a personal member is not declared or not nullable, or `onUnknown` is
 * missing
 */
export function job<Services, const Shape extends z.ZodRawShape>(
  options: JobOptions<Services, Shape>,
): JobDeclaration<Services, z.output<z.ZodObject<Shape, z.core.$strict>>> {
  const { name, personal = {}, retries = 12, after_unknown, onUnknown, timeout_ms = MINUTE_MS } = options;
  if (!NAME.test(name)) throw new Error(`a job's name is of lower-case letters and hyphens, ${name} is not`);
  if ((after_unknown === 'end') !== (onUnknown !== undefined))
    throw new Error(`${name}: a job that ends after an unknown outcome declares onUnknown, no other does`);
  const payload = z.strictObject(options.payload);
  for (const member of Object.keys(personal)) {
    const declared = payload.shape[member] as z.ZodType | undefined;
    if (declared === undefined) throw new Error(`${name}: the personal member ${member} is not declared`);
    if (!declared.safeParse(null).success) {
      throw new Error(`${name}: the personal member ${member} reads as null after an erasure: declare it nullable`);
    }
  }
  return { ...options, kind: 'job', payload, personal, retries, timeout_ms };
}

/** Work of the system itself, done again and again: it must bear being done twice, and goes on until it succeeds. */
export function periodic(options: {
  name: string;
  every_ms: number;
  /** Default: the period, an hour at most. */
  timeout_ms?: number;
  /** Returns how many things it changed. */
  run(signal: AbortSignal): Promise<number>;
  onChanged?(changed: number): void;
}): JobDeclaration {
  const { name, every_ms, timeout_ms = Math.min(every_ms, 60 * MINUTE_MS), run, onChanged } = options;
  const declared = job({
    name,
    payload: {},
    retries: UNENDING,
    after_unknown: 'repeat',
    timeout_ms,
    async run(_payload, { signal }) {
      const changed = await run(signal);
      if (changed > 0) onChanged?.(changed);
    },
  });
  return { ...declared, every_ms } as JobDeclaration;
}

/** As many tries as the store can count. */
const UNENDING = 32_766;

/** A job as it is enqueued. */
export interface Enqueued<Payload> {
  /** Names the effect: the same key does not count twice within 7 days. Nothing personal. */
  key: string;
  payload: Payload;
  /** RFC 3339; absent: at once. */
  run_at?: string;
  /** RFC 3339; no try begins later. */
  expires_at?: string;
}

/** A job that is asked for by its name, where its declaration cannot be seen. */
export interface JobRequest extends Enqueued<unknown> {
  name: string;
}

/** The other side was asked and nobody knows what it did: no answer came, or only a part of it. */
export class OutcomeUnknown extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OutcomeUnknown';
  }
}

/** Nothing reached the other side, or it has refused: it has certainly done nothing. */
export class NotSent extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'NotSent';
  }
}

/** No later try can succeed: the job is left to an operator at once. */
export class JobRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'JobRefused';
  }
}
