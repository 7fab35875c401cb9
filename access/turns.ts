import { pause } from '../kernel/signal';

/**
 * Those of this process who lost a race for the same thing try again one after the other: together, one of them would
 * win each time and all others lose again.
 */
export class Turns {
  private readonly last = new Map<string, Promise<void>>();

  /**
   * Waits until whoever came before is done, at most so long. Returns what says that the caller is done; to be called
   * once, whatever becomes of its try.
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
