import type { FastifyReply } from 'fastify';
import type { Caller } from '../access/caller';
import { ApiError } from '../domain/errors';
import type { Logger } from '../engines/log/port';
import type { Counter } from '../engines/metrics/port';
import type { RateLimits, RateLimitState } from '../engines/rate-limits/port';
import { logFacts } from './request-state';

export const RATE_LIMIT_MESSAGE = 'Rate limit exceeded';

/** Counts units against a caller's bucket and shows the state in headers. Source: spec rulings, "rate-limit buckets". */
export interface Limiter {
  /** @throws ApiError RATE_LIMIT_EXCEEDED with the seconds to wait */
  count(caller: Caller, cost: number, reply: FastifyReply): Promise<void>;
}

export function createLimiter(limits: RateLimits, log: Logger, failures: Counter): Limiter {
  return {
    async count(caller, cost, reply) {
      if (caller.rate_limit === null || cost === 0) return;
      let state: RateLimitState;
      try {
        state = await limits.take(caller.rate_bucket, cost, caller.rate_limit);
      } catch (error) {
        // A limiter that is away must not take the service with it: requests pass, and an alarm can watch the counter.
        failures.inc();
        log.warn({ error, ...logFacts(reply.request) }, 'the rate limiter did not answer');
        return;
      }
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
