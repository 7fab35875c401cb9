/**
 * Broadcast between nodes, at most once and never stored: test events, client broadcasts, presence, cache
 * invalidations.
 */
export interface Relay {
  publish(topic: string, message: string): Promise<void>;
  /** Returns a function that ends the subscription. */
  subscribe(topic: string, handler: (message: string) => void): () => void;
  /**
   * For a topic with a subscription here: true once messages that other nodes publish from now on arrive, as long as
   * the server is available; false when the server is unavailable or does not answer within half a second.
   */
  heard(topic: string): Promise<boolean>;
  close(): Promise<void>;
}
