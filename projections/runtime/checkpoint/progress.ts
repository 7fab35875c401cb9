import { Signal } from '../../../lib/async/signal';

/**
 * Progress of the projections of this process, in memory: wakes a reader that waits for its own write without a read of
 * the database. Never ahead of the checkpoints.
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

  /** Position that this process has reached; undefined when it has not driven the partition. */
  at(projection: string, partition: number): string | undefined {
    return this.places.get(projection)?.get(partition);
  }

  /** Forgets the progress, because another process drives the projection now. */
  forget(projection: string): void {
    this.places.delete(projection);
  }

  /** Resolves at the next advance, or after `ms`. */
  async next(ms: number): Promise<void> {
    this.advanced.clear();
    await this.advanced.wait(ms);
  }

  /** Wakes all waiting readers, after a signal from another process. */
  wake(): void {
    this.advanced.raise();
  }
}
