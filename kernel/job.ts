import { z } from 'zod';
import type { Queryable } from '../engines/postgres/port';
import type { SubjectOf } from './event';

/**
 * Effect of a job in our database. It runs in the transaction that ends the job, so that it happens exactly once
 * however often the job was tried.
 */
export type Effect = (tx: Queryable) => Promise<unknown>;

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
   * other side knows our key or the call bears repeating, `park` where an operator must decide.
   */
  readonly after_unknown: 'repeat' | 'park';
  /** Milliseconds that one try may take. */
  readonly timeout_ms: number;
  /** Present on a periodic job: it is made once in every period of this length, and once at the first start. */
  readonly every_ms?: number;
  /**
   * Calls the outside; what it returns is done in our database. {@link OutcomeUnknown} says that a call may have been
   * done; of a job that parks every other error says so too, but for {@link NotSent} and {@link JobRefused}.
   */
  run(payload: Payload, attempt: JobTry, services: Services): Promise<Effect | void>;
}

export interface JobOptions<Services, Shape extends z.ZodRawShape> {
  name: string;
  /** Every member. A later build must still read the payloads that this one stored. */
  payload: Shape;
  personal?: JobDeclaration['personal'];
  /** Default 12: with growing pauses that is about half a day. */
  retries?: number;
  after_unknown: 'repeat' | 'park';
  /** Default one minute. */
  timeout_ms?: number;
  run: JobDeclaration<Services, z.output<z.ZodObject<Shape, z.core.$strict>>>['run'];
}

const NAME = /^[a-z][a-z0-9-]{0,60}$/;
const MINUTE_MS = 60_000;

/**
 * Declares a job of an area. Reactors and projections enqueue it in the transaction that moves their checkpoint.
 * @throws Error when the name is malformed, or a personal member is not declared or not nullable
 */
export function job<Services, const Shape extends z.ZodRawShape>(
  options: JobOptions<Services, Shape>,
): JobDeclaration<Services, z.output<z.ZodObject<Shape, z.core.$strict>>> {
  const { name, personal = {}, retries = 12, after_unknown, timeout_ms = MINUTE_MS, run } = options;
  if (!NAME.test(name)) throw new Error(`a job's name is of lower-case letters and hyphens, ${name} is not`);
  const payload = z.strictObject(options.payload);
  for (const member of Object.keys(personal)) {
    const declared = payload.shape[member] as z.ZodType | undefined;
    if (declared === undefined) throw new Error(`${name}: the personal member ${member} is not declared`);
    if (!declared.safeParse(null).success) {
      throw new Error(`${name}: the personal member ${member} reads as null after an erasure: declare it nullable`);
    }
  }
  return { kind: 'job', name, payload, personal, retries, after_unknown, timeout_ms, run };
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
  /** Says which effect it is: the same key never counts twice, of whatever try or caller. Nothing personal. */
  key: string;
  payload: Payload;
  /** RFC 3339; absent: at once. */
  run_at?: string;
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
