/**
 * Broadcast between nodes, at most once and never stored: test events, client broadcasts, presence, cache
 * invalidations.
 */
export interface Relay {
  publish(topic: string, message: string): Promise<void>;
  /** Returns a function that ends the subscription. */
  subscribe(topic: string, handler: (message: string) => void): () => void;
  /**
   * Of a topic that is subscribed here. True once all that other nodes publish to it from now on is heard, for as long
   * as the server is there; false when that cannot be said, since it is away or does not answer within half a second.
   */
  heard(topic: string): Promise<boolean>;
  close(): Promise<void>;
}
