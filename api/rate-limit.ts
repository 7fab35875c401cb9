import type { FastifyReply } from 'fastify';
import type { Counts } from '../access/counts';
import type { Bucket } from '../access/rate-buckets';
import { ApiError } from '../kernel/errors';
import { logFacts } from './request-state';

export const RATE_LIMIT_MESSAGE = 'Rate limit exceeded';

/** Counts units against a bucket and shows its state in headers. Source: spec rulings, "rate-limit buckets". */
export interface Limiter {
  /** @throws ApiError RATE_LIMIT_EXCEEDED with the seconds to wait */
  count(bucket: Bucket, cost: number, reply: FastifyReply): Promise<void>;
}

export function createLimiter(counts: Counts): Limiter {
  return {
    async count(bucket, cost, reply) {
      const state = await counts.take(bucket, cost, logFacts(reply.request));
      if (state === null) return;
      void reply.headers({
        'x-ratelimit-limit': state.limit,
        'x-ratelimit-remaining': Math.max(0, state.remaining),
        'x-ratelimit-reset': Math.ceil(state.reset_seconds),
      });
      if (state.allowed) return;
      throw new ApiError('RATE_LIMIT_EXCEEDED', RATE_LIMIT_MESSAGE, {
        retry_after_seconds: Math.max(1, Math.ceil(state.reset_seconds)),
      });
    },
  };
}
