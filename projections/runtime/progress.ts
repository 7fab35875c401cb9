import { Signal } from '../../kernel/signal';

/**
 * How far the projections of this process are, in memory: what wakes a reader that waits for its own write without
 * asking the database. Only ever behind the checkpoints, never ahead of them.
 */
export class Progress {
  private readonly places = new Map<string, Map<number, string>>();
  private readonly advanced = new Signal();

  /** Called after the commit. */
  advance(projection: string, partition: number, position: string): void {
    let places = this.places.get(projection);
    if (!places) this.places.set(projection, (places = new Map()));
    places.set(partition, position);
    this.advanced.raise();
  }

  /** Where this process brought the partition to; undefined when it has not driven it. */
  at(projection: string, partition: number): string | undefined {
    return this.places.get(projection)?.get(partition);
  }

  /** Another process drives it now: what this one knows grows old. */
  forget(projection: string): void {
    this.places.delete(projection);
  }

  /** Resolves at the next advance, or after `ms`. */
  async next(ms: number): Promise<void> {
    this.advanced.clear();
    await this.advanced.wait(ms);
  }

  /** Wakes everyone who waits, as news from another process does. */
  wake(): void {
    this.advanced.raise();
  }
}
