import type { FastifyReply } from 'fastify';
import type { RateLimiter } from '../../access/limits/rate-limiter';
import type { Caller, RequestUnits } from '../../access/authentication/caller';
import { accountBucket, operationBucket, type Bucket } from '../../access/limits/rate-buckets';
import type { RateLimitState } from '../../engines/rate-limits/port';
import { ApiError } from '../../kernel/errors';
import { logFacts } from './requests/request-state';

export const RATE_LIMIT_MESSAGE = 'Rate limit exceeded';

/**
 * Counts units against buckets; returns null when nothing is counted. Source: spec rulings, "rate-limit buckets".
 */
export interface Limiter {
  /**
   * Counts calls of an operation that has a limit of its own; headers show that limit only on a refusal.
   * @throws ApiError RATE_LIMIT_EXCEEDED with the seconds to wait
   */
  countCalls(caller: Bucket, name: string, per_minute: number, calls: number, reply: FastifyReply): Counted;
  /**
   * Counts units of a bucket, and shows its state in headers.
   * @throws ApiError RATE_LIMIT_EXCEEDED with the seconds to wait
   */
  count(bucket: Bucket, cost: number, reply: FastifyReply): Counted;
  /**
   * Counts a caller's request, and a key's or token's also against its account once its own bucket has allowed it.
   * Headers show the caller's own bucket, or the one that refuses.
   * @throws ApiError RATE_LIMIT_EXCEEDED with the seconds to wait
   */
  countCaller(caller: Caller, cost: number, reply: FastifyReply): Counted;
  /** Counts the cost of a request's operations beyond its first unit; headers show the bucket only on a refusal. */
  unitsOf(caller: Caller, reply: FastifyReply): DeferringUnits;
}
export interface DeferringUnits extends RequestUnits {
  /** Keeps the refusal of the request's own unit, which `moveTo` drops; throws any other error. */
  defer(refusal: unknown): void;
}
type Counted = Promise<void> | null;

export function createLimiter(counts: RateLimiter): Limiter {
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
    countCaller(caller, cost, reply) {
      const account = accountBucket(caller);
      const own = count(caller, cost, reply, false);
      if (account === null) return own;
      const shared = () => count(account, cost, reply, true);
      return own === null ? shared() : own.then(() => shared() ?? undefined);
    },
    unitsOf(caller, reply) {
      let deferred: ApiError | null = null;
      return {
        take: async (bucket, units) => void (await count(bucket, units, reply, true)),
        async moveTo(bucket) {
          deferred = null;
          counts.giveBack(caller);
          const account = accountBucket(caller);
          if (account !== null) counts.giveBack(account);
          await count(bucket, 1, reply, false);
        },
        defer(refusal) {
          if (!(refusal instanceof ApiError && refusal.code === 'RATE_LIMIT_EXCEEDED')) throw refusal;
          deferred = refusal;
        },
        refusal: () => deferred,
      };
    },
    countCalls: (caller, name, per_minute, calls, reply) =>
      count(operationBucket(caller, name, per_minute), calls, reply, true),
  };
}
