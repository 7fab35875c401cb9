import { comparePositions } from './kurrentdb-events';
import type { Position } from './port';

export interface StallWatchOptions {
  /** Milliseconds between looks; a stall is noticed by the second look that finds it. */
  every_ms: number;
  /** The newest position that arrived; undefined while more is there than was taken, which is no stall. */
  arrived(): Position | null | undefined;
  /** The store's newest event, of the node that leads. */
  head(): Promise<Position | null>;
  fail(error: unknown): void;
}

/**
 * Notices a subscription that brings nothing although the store is ahead of it: its node has lost its cluster, and
 * serves on what it had. Every other sign of it (an error, a broken link) comes by itself. Answers how to end the
 * watch.
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
