import type { Bucket } from '../access/rate-buckets';

/** Streams that one caller reads of one operation at a time, on this node: each holds a page of rows. */
const MOST = 4;

/**
 * Counts what is under way, for each caller and name. A credential without a limit has none here either.
 */
export class AtOnce {
  private readonly counts = new Map<string, number>();

  /** Returns what ends it, to be called once; null when there are as many already as may be. */
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
