import { Buckets } from './buckets';
import { createPaces } from './pace';
import type { RateLimits, RateLimitState } from './port';

export const WINDOW_MS = 60_000;

/** Units of a bucket in its present window. */
interface Window {
  units: number;
  /** By the monotonic clock, in whole milliseconds. */
  ends_at: number;
}

/** Windows in the memory of this process: exact for one process; with several, each node counts for itself. */
export function createLocalRateLimits(): RateLimits {
  const paceOf = createPaces();
  const windows = new Buckets<Window>(({ ends_at }, now) => ends_at <= now);
  return {
    pace: async (bucket, limit, units) => paceOf(bucket, limit, units),
    async take(bucket, cost, limit_per_minute) {
      const now = Math.floor(performance.now());
      let window = windows.get(bucket);
      if (window === undefined || window.ends_at <= now)
        windows.set(bucket, (window = { units: 0, ends_at: now + WINDOW_MS }));
      window.units += cost;
      return stateOf(window.units, limit_per_minute, window.ends_at - now);
    },
    async giveBack(bucket) {
      const window = windows.get(bucket);
      if (window !== undefined && window.ends_at > performance.now()) window.units -= 1;
    },
    close: async () => windows.clear(),
  };
}

/**
 * State of a bucket with this number of units in a window that ends in `left_ms`. The limit is the caller's own, so
 * that one limiter serves every tier.
 */
export const stateOf = (units: number, limit: number, left_ms: number): RateLimitState => ({
  allowed: units <= limit,
  limit,
  remaining: Math.max(0, limit - units),
  reset_seconds: Math.max(1, Math.ceil(left_ms / 1000)),
});
