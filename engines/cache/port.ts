/** Short-lived shared values. A miss, or an unavailable engine, reads as undefined: the caller reads the source. */
export interface Cache {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string, ttl_seconds: number): Promise<void>;
  delete(key: string): Promise<void>;
  /** False when the engine behind it does not answer. */
  ping(): Promise<boolean>;
  close(): Promise<void>;
}
