/** How long to wait before a try. */
export interface Backoff {
  /** Milliseconds until the next try, each call counting as one; the longest wait doubles, up to the limit. */
  next(): number;
  /** Begins anew. */
  reset(): void;
}

/**
 * Exponential with jitter: the first wait is between `first_ms` and twice of it, the last
 * between half the limit and the limit.
 */
export function exponential(first_ms: number, most_ms: number, random: () => number): Backoff {
  let tries = 0;
  return {
    next() {
      const longest = Math.min(most_ms, first_ms * 2 ** ++tries);
      // No number overflows, however long it goes on.
      tries = Math.min(tries, 30);
      return Math.max(Math.min(first_ms, most_ms), (longest / 2) * (1 + random()));
    },
    reset() {
      tries = 0;
    },
  };
}
