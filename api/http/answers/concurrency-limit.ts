import type { Bucket } from '../../../access/limits/rate-buckets';

/** Most concurrent streams of a caller per operation on this node, because each holds a page of rows. */
const MOST = 4;

/**
 * Counts concurrent streams by caller and name. A credential without a rate limit has none here either.
 */
export class ConcurrencyLimit {
  private readonly counts = new Map<string, number>();

  /** Begins a stream; returns the function that ends it, to be called once, or null at the limit. */
  begin({ rate_bucket, rate_limit }: Bucket, name: string): (() => void) | null {
    if (rate_limit === null) return () => undefined;
    const key = `${name} ${rate_bucket}`;
    const count = this.counts.get(key) ?? 0;
    if (count >= MOST) return null;
    this.counts.set(key, count + 1);
    return () => {
      const left = this.counts.get(key)! - 1;
      if (left === 0) this.counts.delete(key);
      else this.counts.set(key, left);
    };
  }
}
