/**
 * "There may be something new" between processes; losing one costs only the fallback poll's delay, never a record.
 * Coalesced, sent after the commit.
 */
export interface Wakeups {
  notify(name: string): void;
  /** Returns a function that ends it. `elsewhere` is false when only this process notified. */
  on(name: string, wake: (elsewhere: boolean) => void): () => void;
  close(): Promise<void>;
}
