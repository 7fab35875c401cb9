import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import type { RedisLink } from '../redis/connection';
import { limitsOver, WINDOW } from './local';
import type { RateLimits } from './port';

/**
 * Windows that all nodes share. While Redis is away each node counts for itself, so a caller may use its limit once per
 * node; a caller waits at most the link's command timeout (100 ms) for the first request that finds Redis silent, and
 * not at all after it.
 */
export function createRedisRateLimits(options: { link: RedisLink; prefix: string }): RateLimits {
  return limitsOver(
    new RateLimiterRedis({
      ...WINDOW,
      storeClient: options.link.client,
      keyPrefix: `${options.prefix}limit`,
      rejectIfRedisNotReady: true,
      insuranceLimiter: new RateLimiterMemory(WINDOW),
    }),
  );
}
