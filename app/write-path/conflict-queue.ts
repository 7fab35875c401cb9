import { pause } from '../../lib/async/signal';

/**
 * Queues this process's retries per stream after a revision conflict. Retrying all at once would let one win and the
 * rest conflict again.
 */
export class ConflictQueue {
  private readonly last = new Map<string, Promise<void>>();

  /**
   * Waits for the previous caller of this name, at most `most_ms`. Returns a function that ends the caller's turn; call
   * it once, whether the retry succeeds or not.
   */
  async next(name: string, most_ms: number): Promise<() => void> {
    const before = this.last.get(name);
    let done!: () => void;
    const own = new Promise<void>((resolve) => (done = resolve));
    this.last.set(name, own);
    if (before !== undefined) {
      const stop = new AbortController();
      await Promise.race([before, pause(most_ms, stop.signal)]);
      stop.abort();
    }
    return () => {
      if (this.last.get(name) === own) this.last.delete(name);
      done();
    };
  }
}
