import { pause } from './signal';

/** Pauses between tries, in milliseconds: each is at most double the one before and never longer than `most_ms`. */
export interface Pauses {
  first_ms: number;
  most_ms: number;
}

/**
 * Growing pauses, each drawn between its half and its whole, so that those who failed together do not return together.
 */
export class Backoff {
  /** @param count failures that were counted before, by whoever kept them */
  constructor(
    private readonly pauses: Pauses,
    private count = 0,
  ) {}

  /** Failures since the last {@link reset}. */
  get failures(): number {
    return this.count;
  }

  /** Counts a failure; answers the milliseconds to wait after it. */
  next(): number {
    const { first_ms, most_ms } = this.pauses;
    const longest = Math.min(most_ms, first_ms * 2 ** Math.min(this.count, 30));
    this.count += 1;
    return longest * (0.5 + Math.random() / 2);
  }

  /** After a success the next pause is the first one again. */
  reset(): void {
    this.count = 0;
  }
}

/** Facts for one try. */
export interface Try {
  /** 1 for the first. */
  number: number;
  /** Milliseconds until no further try would begin; infinite without a bound. */
  left_ms: number;
}

export interface RetryOptions extends Pauses {
  /** Whether the same work may succeed later. What it is false for is thrown at once. */
  passing(error: unknown): boolean;
  /** Milliseconds after the start in which a try may begin. Default: without bound. */
  within_ms?: number;
  /** How many tries there are at most. Default: without bound. */
  tries?: number;
  /** Ends the pauses: no try begins after it. */
  signal?: AbortSignal;
  /** Milliseconds that the other side asked for; they take the place of the pause, also where they are longer. */
  asked_ms?(error: unknown): number | undefined;
  /** Told before each pause. */
  onFailure?(error: unknown, failures: number, pause_ms: number): void;
}

/**
 * Does the work until it succeeds.
 * @throws what the work threw when that will not pass, or when no other try is left; the signal's reason when it is
 * aborted
 */
export async function retry<T>(work: (attempt: Try) => Promise<T>, options: RetryOptions): Promise<T> {
  const { passing, within_ms = Infinity, tries = Infinity, signal, asked_ms, onFailure } = options;
  const give_up_at = performance.now() + within_ms;
  const backoff = new Backoff(options);
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await work({ number: backoff.failures + 1, left_ms: give_up_at - performance.now() });
    } catch (error) {
      if (signal?.aborted || !passing(error)) throw error;
      const drawn_ms = backoff.next();
      const pause_ms = asked_ms?.(error) ?? drawn_ms;
      if (backoff.failures >= tries || performance.now() + pause_ms > give_up_at) throw error;
      onFailure?.(error, backoff.failures, pause_ms);
      await pause(pause_ms, signal);
    }
  }
}
