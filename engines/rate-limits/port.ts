export interface RateLimitState {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Seconds until the window ends. */
  reset_seconds: number;
}

/** Fixed one-minute windows per bucket, shared between nodes where the engine allows. */
export interface RateLimits {
  take(bucket: string, cost: number, limit_per_minute: number): Promise<RateLimitState>;
  /** One unit less counts in the bucket's window. */
  giveBack(bucket: string): Promise<void>;
  close(): Promise<void>;
}
