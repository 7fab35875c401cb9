import type { Wakeups } from './port';

/** Wake-ups within one process. A name's listeners are called once per turn of the event loop, however often it was notified. */
export function createLocalWakeups(): Wakeups {
  return new LocalWakeups();
}

export class LocalWakeups implements Wakeups {
  private readonly listeners = new Map<string, Set<() => void>>();
  private readonly due = new Set<string>();

  notify(name: string): void {
    if (this.due.size === 0) setImmediate(() => this.deliver());
    this.due.add(name);
  }

  on(name: string, wake: () => void): () => void {
    const listeners = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, listeners);
    // Wrapped, so that one function given twice is two listeners.
    const listener = () => wake();
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.listeners.get(name) === listeners) this.listeners.delete(name);
    };
  }

  /** Wakes everyone: after a time in which notifications may have been missed. */
  wakeAll(): void {
    for (const name of this.listeners.keys()) this.notify(name);
  }

  async close(): Promise<void> {
    this.listeners.clear();
  }

  private deliver(): void {
    const names = [...this.due];
    this.due.clear();
    for (const name of names) for (const wake of [...(this.listeners.get(name) ?? [])]) wake();
  }
}
