import type { Wakeups } from './port';

/**
 * Wake-ups within one process. A name's listeners are called once per turn of the event loop, however often it was
 * notified.
 */
export function createLocalWakeups(): Wakeups {
  return new LocalWakeups();
}

export class LocalWakeups implements Wakeups {
  private readonly listeners = new Map<string, Set<(elsewhere: boolean) => void>>();
  /** Name to whether another process notified it. */
  private readonly due = new Map<string, boolean>();

  notify(name: string, elsewhere = false): void {
    if (this.due.size === 0) setImmediate(() => this.deliver());
    this.due.set(name, elsewhere || this.due.get(name) === true);
  }

  on(name: string, wake: (elsewhere: boolean) => void): () => void {
    const listeners = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, listeners);
    // Wrapped, so that a function registered twice is two listeners.
    const listener = (elsewhere: boolean) => wake(elsewhere);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.listeners.get(name) === listeners) this.listeners.delete(name);
    };
  }

  /** Wakes all listeners, after a time in which notifications may have been missed. */
  wakeAll(): void {
    for (const name of this.listeners.keys()) this.notify(name, true);
  }

  async close(): Promise<void> {
    this.listeners.clear();
  }

  private deliver(): void {
    const due = [...this.due];
    this.due.clear();
    for (const [name, elsewhere] of due) for (const wake of [...(this.listeners.get(name) ?? [])]) wake(elsewhere);
  }
}
