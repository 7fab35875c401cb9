/**
 * Broadcast between nodes, at most once and never stored: test events, client broadcasts, presence, cache
 * invalidations.
 */
export interface Relay {
  publish(topic: string, message: string): Promise<void>;
  /** Returns a function that ends the subscription. */
  subscribe(topic: string, handler: (message: string) => void): () => void;
  close(): Promise<void>;
}
