import type { Slots } from './port';

/** Counts of this process, exact at every moment; an empty bucket takes no memory. */
export class SlotCounts {
  private readonly counts = new Map<string, number>();

  /** Adds one to the bucket; returns the new count. */
  add(bucket: string): number {
    const count = this.of(bucket) + 1;
    this.counts.set(bucket, count);
    return count;
  }

  remove(bucket: string): void {
    const count = this.of(bucket) - 1;
    if (count > 0) this.counts.set(bucket, count);
    else this.counts.delete(bucket);
  }

  of = (bucket: string): number => this.counts.get(bucket) ?? 0;

  /** Buckets with a count above zero. */
  buckets = (): string[] => [...this.counts.keys()];
}

/** Slots of one process. */
export function createLocalSlots(): Slots {
  const counts = new SlotCounts();
  return {
    async take(bucket, limit) {
      if (counts.of(bucket) >= limit) return false;
      counts.add(bucket);
      return true;
    },
    giveBack: (bucket) => counts.remove(bucket),
    close: async () => undefined,
  };
}
