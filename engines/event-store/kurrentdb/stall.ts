import { comparePositions } from './events';
import type { Position } from '../port';

export interface StallWatchOptions {
  /** Milliseconds between checks; the second check in a row without progress is a stall. */
  every_ms: number;
  /** Newest position that arrived; undefined while arrivals wait to be taken, which is no stall. */
  arrived(): Position | null | undefined;
  /** Position of the newest event on the leader. */
  head(): Promise<Position | null>;
  fail(error: unknown): void;
}

/**
 * Detects a subscription without arrivals although the store is ahead of it: its node has lost its cluster and still
 * serves its old data. Such a node reports no error and closes no connection. Returns the function that ends the watch.
 */
export function watchForStall({ every_ms, arrived, head, fail }: StallWatchOptions): () => void {
  let ended = false;
  let timer: NodeJS.Timeout;
  let behind_at: Position | null | undefined;
  const look = async () => {
    const at = arrived();
    try {
      const newest = at === undefined ? null : await head();
      const behind = newest !== null && at !== undefined && (at === null || comparePositions(at, newest) < 0);
      if (behind && at === behind_at)
        throw new Error(`the subscription brings nothing after ${at}, and the store is at ${newest}`);
      behind_at = behind ? at : undefined;
      if (!ended) plan();
    } catch (error) {
      if (!ended) fail(error);
    }
  };
  const plan = () => (timer = setTimeout(() => void look(), every_ms));
  plan();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
