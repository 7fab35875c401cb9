import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import type { RedisLink } from '../redis/connection';
import type { RateLimits, RateLimitState } from './port';

const WINDOW_SECONDS = 60;

/**
 * Windows that all nodes share. While Redis is away each node counts for itself, so a caller may use its limit once per
 * node; a caller waits at most the link's command timeout (100 ms) for the first request that finds Redis silent, and
 * not at all after it.
 */
export function createRedisRateLimits(options: { link: RedisLink; prefix: string }): RateLimits {
  // Points are counted against the caller's own limit, not the limiter's, so that one limiter serves every tier.
  const window = { points: Number.MAX_SAFE_INTEGER, duration: WINDOW_SECONDS };
  const limiter = new RateLimiterRedis({
    ...window,
    storeClient: options.link.client,
    keyPrefix: `${options.prefix}limit`,
    rejectIfRedisNotReady: true,
    insuranceLimiter: new RateLimiterMemory(window),
  });
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
