import type { FakeAnswer } from './cloud';

interface Bucket {
  left: number;
  /** Unix seconds. */
  reset: number;
}

/** Buckets of calls, one for each token, as Twitch reports and enforces them. */
export class CallBuckets {
  /** Calls of a full bucket. */
  size = Infinity;
  /** Time until an emptied bucket is full again, at least; Twitch names whole seconds. */
  refill_ms = 1_000;
  private readonly buckets = new Map<string, Bucket>();

  /** The answer, if the token has a call left; else 429. */
  spend(token: string, answer: () => FakeAnswer): FakeAnswer {
    if (this.size === Infinity) return answer();
    const bucket = this.bucketOf(token);
    const is_limited = bucket.left === 0;
    if (!is_limited) bucket.left -= 1;
    const said = is_limited ? { status: 429, body: { status: 429, message: 'Too Many Requests' } } : answer();
    const headers = {
      'ratelimit-limit': String(this.size),
      'ratelimit-remaining': String(bucket.left),
      'ratelimit-reset': String(bucket.reset),
    };
    return { ...said, headers };
  }

  private bucketOf(token: string): Bucket {
    const known = this.buckets.get(token);
    if (known && known.reset * 1000 > Date.now()) return known;
    const bucket = { left: this.size, reset: Math.ceil((Date.now() + this.refill_ms) / 1000) };
    this.buckets.set(token, bucket);
    return bucket;
  }
}
