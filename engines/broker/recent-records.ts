import type { BrokerRecord } from './port';
import type { Fetched, FetchRequest } from './postgres/log';

/** Bounds of what is kept for a topic; what no longer fits is read from the log. */
const MAX_BYTES = 4 * 1024 * 1024;
const KEEP_MS = 2000;

interface Group {
  partition: number;
  /** Offset after its last record. */
  end: number;
  window: BrokerRecord[];
  count: number;
  bytes: number;
  at: number;
}

/**
 * Hands records of one topic that this process has just made durable to its own consumers, which then need not read
 * them from the log. Holds one run of offsets without a hole per partition; a record of another process in between
 * starts a new run, and missing records are read from the log. A consumer must still read the log when other processes
 * may have written. Records that every consumer has read are dropped at once, because the garbage collector copies and
 * marks each record that lives for seconds.
 */
export class RecentRecords {
  private readonly windows = new Map<number, BrokerRecord[]>();
  /** Per partition the offset after the last record that was added. */
  private readonly ends = new Map<number, number>();
  /** Oldest first. */
  private groups: Group[] = [];
  /** Next offset of each consumer, by partition. */
  private readonly readers = new Set<ReadonlyMap<number, number>>();
  private bytes = 0;
  private timer: NodeJS.Timeout | undefined;

  /** Registers a consumer by its positions, which the consumer itself advances. Returns the function that ends that. */
  join(positions: ReadonlyMap<number, number>): () => void {
    this.readers.add(positions);
    return () => void this.readers.delete(positions);
  }

  /** Records of one partition in the order of their offsets, without a hole, committed. */
  add(partition: number, records: readonly BrokerRecord[], now = performance.now()): void {
    const known = this.windows.get(partition);
    const follows = known && known.at(-1)?.offset === records[0]!.offset - 1;
    const window = follows ? known : [];
    this.windows.set(partition, window);
    window.push(...records);
    const bytes = records.reduce((sum, { value }) => sum + value.length, 0);
    const end = records.at(-1)!.offset + 1;
    this.ends.set(partition, end);
    this.groups.push({ partition, end, window, count: records.length, bytes, at: now });
    this.bytes += bytes;
    this.drop(now);
    this.timer ??= setTimeout(() => this.expire(), KEEP_MS).unref();
  }

  /** Returns the records after the given positions as a fetch would; undefined when only the log has all of them. */
  take({ from, max_records, max_bytes }: FetchRequest): Fetched | undefined {
    this.dropRead();
    const fetched: Fetched = { records: [], next: new Map(), more: false };
    let bytes = 0;
    for (const [partition, position] of from) {
      // Nothing that this process wrote lies behind the position.
      if (position >= (this.ends.get(partition) ?? 0)) continue;
      const window = this.windows.get(partition)!;
      const first = window[0];
      if (!first || position < first.offset) return undefined;
      for (let at = position - first.offset; at < window.length; at += 1) {
        const record = window[at]!;
        if (fetched.records.length >= max_records || bytes >= max_bytes) {
          fetched.more = true;
          break;
        }
        fetched.records.push(record);
        fetched.next.set(partition, record.offset + 1);
        bytes += record.value.length;
      }
    }
    return fetched;
  }

  private drop(now: number): void {
    let dropped = 0;
    for (const group of this.groups) {
      if (this.bytes <= MAX_BYTES && now - group.at < KEEP_MS) break;
      this.forget(group);
      dropped += 1;
    }
    this.groups.splice(0, dropped);
  }

  /** Drops records that no consumer of this process will request. */
  private dropRead(): void {
    this.groups = this.groups.filter((group) => {
      if (this.isAwaited(group)) return true;
      this.forget(group);
      return false;
    });
  }

  private isAwaited({ partition, end }: Group): boolean {
    for (const positions of this.readers) if ((positions.get(partition) ?? end) < end) return true;
    return false;
  }

  private forget({ window, count, bytes }: Group): void {
    window.splice(0, count);
    this.bytes -= bytes;
  }

  private expire(): void {
    this.drop(performance.now());
    this.timer = this.groups.length > 0 ? setTimeout(() => this.expire(), KEEP_MS).unref() : undefined;
  }
}
