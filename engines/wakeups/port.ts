/**
 * Notifications of possible news between processes, coalesced and sent after the commit. A lost one costs only the
 * delay of the fallback poll, never a record.
 */
export interface Wakeups {
  notify(name: string): void;
  /** Returns the unsubscribe function. `elsewhere` is false when only this process notified. */
  on(name: string, wake: (elsewhere: boolean) => void): () => void;
  close(): Promise<void>;
}
