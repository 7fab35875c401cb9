export interface RateLimitState {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Seconds until the window ends. */
  reset_seconds: number;
}

/** Units per bucket, shared between nodes where the engine allows: in fixed windows of a minute, or at a pace. */
export interface RateLimits {
  take(bucket: string, cost: number, limit_per_minute: number): Promise<RateLimitState>;
  /** Takes one unit back from the bucket's window. */
  giveBack(bucket: string): Promise<void>;
  /**
   * Takes units of a bucket that holds a minute's units and is refilled continuously. Returns the milliseconds that the
   * caller must wait: 0 while the bucket is not empty, 20 s at most. Independent of `take`.
   */
  pace(bucket: string, limit_per_minute: number, units?: number): Promise<number>;
  close(): Promise<void>;
}
