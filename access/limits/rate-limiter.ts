import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { RateLimits, RateLimitState } from '../../engines/rate-limits/port';
import type { Bucket } from './rate-buckets';

/**
 * Counts units against buckets. Requests pass while the limiter is unavailable; a metric counts them, so that an alarm
 * can watch it.
 */
export interface RateLimiter {
  /**
   * Resolves to null when the limiter does not answer; returns null without a limit or at no cost. `log_facts` is
   * called on a failure.
   */
  take(bucket: Bucket, cost?: number, log_facts?: () => object): Promise<RateLimitState | null> | null;
  /** Null when the bucket had a unit left, else the seconds until it has one. */
  wait(bucket: Bucket): Promise<number | null>;
  /** Milliseconds to wait for these units of a continuously refilled bucket; null at once without a limit. */
  pace(bucket: Bucket, units: number): Promise<number> | null;
  /** Returns a unit that was held until its outcome was known. */
  giveBack(bucket: Bucket): void;
}

export function createRateLimiter(deps: { limits: RateLimits; log: Logger; metrics: Metrics }): RateLimiter {
  const { limits, log } = deps;
  const failures = deps.metrics.counter(
    'lumio_rate_limiter_failures_total',
    'Requests let through because the rate limiter did not answer',
  );
  const failed = (error: unknown, facts: object) => {
    failures.inc();
    log.warn({ error, ...facts }, 'the rate limiter did not answer');
  };
  const take: RateLimiter['take'] = ({ rate_bucket, rate_limit }, cost = 1, facts = () => ({})) => {
    if (rate_limit === null || cost === 0) return null;
    return limits.take(rate_bucket, cost, rate_limit).catch((error: unknown) => {
      failed(error, facts());
      return null;
    });
  };
  return {
    take,
    async wait(bucket) {
      const state = await take(bucket);
      return state === null || state.allowed ? null : Math.max(1, Math.ceil(state.reset_seconds));
    },
    pace({ rate_bucket, rate_limit }, units) {
      if (rate_limit === null) return null;
      return limits.pace(rate_bucket, rate_limit, units).catch((error: unknown) => {
        failed(error, {});
        return 0;
      });
    },
    giveBack({ rate_bucket, rate_limit }) {
      if (rate_limit !== null) limits.giveBack(rate_bucket).catch((error: unknown) => failed(error, {}));
    },
  };
}
