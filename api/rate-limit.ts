import type { FastifyReply } from 'fastify';
import type { Counts } from '../access/counts';
import { operationBucket, type Bucket } from '../access/rate-buckets';
import type { RateLimitState } from '../engines/rate-limits/port';
import { ApiError } from '../kernel/errors';
import { logFacts } from './request-state';

export const RATE_LIMIT_MESSAGE = 'Rate limit exceeded';

/**
 * Counts units against buckets; null at once where there is nothing to count. Source: spec rulings, "rate-limit
 * buckets".
 */
export interface Limiter {
  /**
   * Counts calls of an operation that has a limit of its own; headers show it only where it refuses.
   * @throws ApiError RATE_LIMIT_EXCEEDED with the seconds to wait
   */
  countCalls(caller: Bucket, name: string, per_minute: number, calls: number, reply: FastifyReply): Counted;
  /**
   * Shows the bucket's state in headers.
   * @throws ApiError RATE_LIMIT_EXCEEDED with the seconds to wait
   */
  count(bucket: Bucket, cost: number, reply: FastifyReply): Counted;
}
type Counted = Promise<void> | null;

export function createLimiter(counts: Counts): Limiter {
  function count(bucket: Bucket, cost: number, reply: FastifyReply, quiet: boolean): Counted {
    const taken = counts.take(bucket, cost, () => logFacts(reply.request));
    return taken && taken.then((state) => show(state, reply, quiet));
  }
  function show(state: RateLimitState | null, reply: FastifyReply, quiet: boolean): void {
    if (state === null || (quiet && state.allowed)) return;
    void reply.headers({
      'ratelimit-limit': state.limit,
      'ratelimit-remaining': Math.max(0, state.remaining),
      'ratelimit-reset': Math.ceil(state.reset_seconds),
    });
    if (state.allowed) return;
    throw new ApiError('RATE_LIMIT_EXCEEDED', RATE_LIMIT_MESSAGE, {
      retry_after_seconds: Math.max(1, Math.ceil(state.reset_seconds)),
    });
  }
  return {
    count: (bucket, cost, reply) => count(bucket, cost, reply, false),
    countCalls: (caller, name, per_minute, calls, reply) =>
      count(operationBucket(caller, name, per_minute), calls, reply, true),
  };
}
