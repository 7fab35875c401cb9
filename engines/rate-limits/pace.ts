import { Buckets } from './buckets';

/** Capacity of a continuously refilled bucket, as the time whose units it holds. */
export const FULL_MS = 60_000;
/** Longest wait for a unit, however many callers wait for the bucket. */
export const LONGEST_WAIT_MS = 20_000;

/**
 * Continuously refilled buckets of this process (GCRA): each is the moment at which it will be full again.
 */
export function createPaces(): (bucket: string, limit_per_minute: number, units?: number, now?: number) => number {
  const full_at = new Buckets<number>((at, now) => at <= now);
  return (bucket, limit_per_minute, units = 1, now = performance.now()) => {
    const due = Math.max(full_at.get(bucket) ?? 0, now) + (units * FULL_MS) / limit_per_minute;
    const full = Math.min(due, now + FULL_MS + LONGEST_WAIT_MS);
    full_at.set(bucket, full);
    return Math.round(Math.max(0, full - now - FULL_MS));
  };
}
