import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { RedisLink } from '../redis/connection';
import { createLocalRateLimits, stateOf, WINDOW_MS } from './local';
import { FULL_MS, LONGEST_WAIT_MS } from './pace';
import type { RateLimits } from './port';

/**
 * A bucket is the moment at which it is full again; taken units move that by ARGV[1] ms, the bucket holds ARGV[2] ms of
 * units, and a wait lasts at most ARGV[3] ms. Uses the clock of Redis, so that the nodes' clocks need not agree.
 */
const PACE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + tonumber(ARGV[1])
full = math.min(full, now + ARGV[2] + ARGV[3])
redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil(full - now))
return math.floor(math.max(0, full - now - ARGV[2]) + 0.5)`;

/** Units are counted against the caller's own limit, not the limiter's. */
const WINDOW = { points: Number.MAX_SAFE_INTEGER, duration: WINDOW_MS / 1000 };

/**
 * Windows that all nodes share. While Redis is unavailable each node counts for itself, so that a caller may use its
 * limit once per node. The first request that finds Redis silent waits at most the link's command timeout (100 ms),
 * later ones do not wait.
 */
export function createRedisRateLimits({ link, prefix }: { link: RedisLink; prefix: string }): RateLimits {
  const alone = createLocalRateLimits();
  const limiter = new RateLimiterRedis({
    ...WINDOW,
    storeClient: link.client,
    keyPrefix: `${prefix}limit`,
    rejectIfRedisNotReady: true,
  });
  return {
    async pace(bucket, limit, units = 1) {
      if (!link.usable()) return alone.pace(bucket, limit, units);
      const parameters = [(units * FULL_MS) / limit, FULL_MS, LONGEST_WAIT_MS];
      const wait_ms = link.client.eval(PACE, 1, `${prefix}pace:${bucket}`, ...parameters) as Promise<number>;
      return wait_ms.catch(() => alone.pace(bucket, limit, units));
    },
    take(bucket, cost, limit_per_minute) {
      return limiter.consume(bucket, cost).then(
        ({ consumedPoints, msBeforeNext }) => stateOf(consumedPoints, limit_per_minute, msBeforeNext),
        () => alone.take(bucket, cost, limit_per_minute),
      );
    },
    async giveBack(bucket) {
      await limiter.reward(bucket, 1).catch(() => alone.giveBack(bucket));
    },
    close: () => alone.close(),
  };
}
