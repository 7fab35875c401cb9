/** Milliseconds that a timer takes at most; a longer time is cut to it. */
const LONGEST_MS = 2 ** 31 - 1;

/** Resolves after `ms`, or at once when `stop` is or becomes aborted; never rejects. */
export function pause(ms: number, stop?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      stop?.removeEventListener('abort', end);
      resolve();
    };
    const timer = timerOf(end, ms);
    stop?.addEventListener('abort', end);
  });
}

/** Everybody else gets a turn of the event loop. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resume) => void setImmediate(resume));

const timerOf = (end: () => void, ms: number): NodeJS.Timeout | undefined =>
  ms === Infinity ? undefined : setTimeout(end, Math.min(ms, LONGEST_MS));

/**
 * Wake-up for waiters. Raised without a waiter it is kept for the next one, so that no wake-up is lost between a check
 * and the wait after it; raised several times it counts as one.
 */
export class Signal {
  private raised = false;
  private readonly waiting = new Set<(raised: boolean) => void>();

  /** Wakes all who wait. */
  readonly raise = (): void => {
    if (this.waiting.size === 0) this.raised = true;
    for (const wake of [...this.waiting]) wake(true);
  };

  /** Forgets the news that is kept: what is looked at from now on shows it. */
  clear(): void {
    this.raised = false;
  }

  /** True when raised, at once if that was before; false after `ms` or when `stop` is aborted. */
  wait(ms: number, stop?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.raised || stop?.aborted) {
        const raised = this.raised;
        this.raised = false;
        return resolve(raised);
      }
      const end = (raised: boolean) => {
        clearTimeout(timer);
        this.waiting.delete(end);
        stop?.removeEventListener('abort', stopped);
        resolve(raised);
      };
      const stopped = () => end(false);
      const timer = timerOf(stopped, ms);
      this.waiting.add(end);
      stop?.addEventListener('abort', stopped);
    });
  }
}

/**
 * Result of `work` within a time. The work continues beyond it, and its late outcome is dropped.
 * @throws what `late` makes, or the work
 */
export async function withTimeout<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_resolve, reject) => (timer = setTimeout(() => reject(late()), ms)));
  work.catch(() => undefined);
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
