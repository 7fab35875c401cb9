import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { RateLimits, RateLimitState } from '../engines/rate-limits/port';
import type { Bucket } from './rate-buckets';

/**
 * Counts units against buckets. A limiter that is away must not take the service with it: requests pass, and an alarm
 * can watch the counter.
 */
export interface Counts {
  /**
   * Null where the limiter does not answer; null at once where the bucket has no limit, or nothing is taken.
   * `log_facts` are asked for where it fails.
   */
  take(bucket: Bucket, cost?: number, log_facts?: () => object): Promise<RateLimitState | null> | null;
  /** Null when the bucket had a unit left, else the seconds until it has. */
  wait(bucket: Bucket): Promise<number | null>;
  /**
   * How many milliseconds to wait for the units that this takes, of a bucket that is refilled continuously; null at
   * once where the bucket has no limit.
   */
  pace(bucket: Bucket, units: number): Promise<number> | null;
  /** Gives back a unit that was held until it was clear whether it counts. */
  giveBack(bucket: Bucket): void;
}

export function createCounts(deps: { limits: RateLimits; log: Logger; metrics: Metrics }): Counts {
  const { limits, log } = deps;
  const failures = deps.metrics.counter(
    'lumio_rate_limiter_failures_total',
    'Requests let through because the rate limiter did not answer',
  );
  const failed = (error: unknown, facts: object) => {
    failures.inc();
    log.warn({ error, ...facts }, 'the rate limiter did not answer');
  };
  const take: Counts['take'] = ({ rate_bucket, rate_limit }, cost = 1, facts = () => ({})) => {
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
