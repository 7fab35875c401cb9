import { RateLimiterMemory, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { createPaces } from './pace';
import type { RateLimits } from './port';

/**
 * Windows of a minute. Points are counted against the caller's own limit, not the limiter's, so that one limiter serves
 * every tier.
 */
export const WINDOW = { points: Number.MAX_SAFE_INTEGER, duration: 60 };

/** Windows in this process's memory: right for one process, each node counts for itself otherwise. */
export function createLocalRateLimits(): RateLimits {
  const paceOf = createPaces();
  return limitsOver(new RateLimiterMemory(WINDOW), async (bucket, limit) => paceOf(bucket, limit));
}

export function limitsOver(limiter: RateLimiterAbstract, pace: RateLimits['pace']): RateLimits {
  return {
    pace,
    async take(bucket, cost, limit_per_minute) {
      const { consumedPoints, msBeforeNext } = await limiter.consume(bucket, cost);
      return {
        allowed: consumedPoints <= limit_per_minute,
        limit: limit_per_minute,
        remaining: Math.max(0, limit_per_minute - consumedPoints),
        reset_seconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      };
    },
    async giveBack(bucket) {
      await limiter.reward(bucket, 1);
    },
    close: async () => undefined,
  };
}
