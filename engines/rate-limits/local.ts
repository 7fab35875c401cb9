import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import type { RateLimits, RateLimitState } from './port';

const WINDOW_SECONDS = 60;

/** Windows in this process's memory: right for one process, each node counts for itself otherwise. */
export function createLocalRateLimits(): RateLimits {
  // Points are counted against the caller's own limit, not the limiter's, so that one limiter serves every tier.
  const limiter = new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: WINDOW_SECONDS });
  return {
    async take(bucket, cost, limit_per_minute): Promise<RateLimitState> {
      const used: RateLimiterRes = await limiter.consume(bucket, cost);
      return {
        allowed: used.consumedPoints <= limit_per_minute,
        limit: limit_per_minute,
        remaining: Math.max(0, limit_per_minute - used.consumedPoints),
        reset_seconds: Math.max(1, Math.ceil(used.msBeforeNext / 1000)),
      };
    },
    async giveBack(bucket) {
      await limiter.reward(bucket, 1);
    },
    close: async () => undefined,
  };
}
