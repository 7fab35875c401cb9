/** Waits before attempts. */
export interface Backoff {
  /** Milliseconds until the next attempt; counts each call as an attempt. The longest wait doubles up to the limit. */
  next(): number;
  /** Restarts with the first wait. */
  reset(): void;
}

/**
 * Exponential with jitter: the first wait is between `first_ms` and twice that, the last between half the limit and the
 * limit.
 */
export function exponential(first_ms: number, most_ms: number, random: () => number): Backoff {
  let tries = 0;
  return {
    next() {
      const longest = Math.min(most_ms, first_ms * 2 ** ++tries);
      // Prevents an overflow after many attempts.
      tries = Math.min(tries, 30);
      return Math.max(Math.min(first_ms, most_ms), (longest / 2) * (1 + random()));
    },
    reset() {
      tries = 0;
    },
  };
}
