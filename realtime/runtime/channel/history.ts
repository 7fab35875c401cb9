import type { StoredMessage } from '../relay/envelopes';
import type { Chunk } from '../session/send-queue';

/** Stored message as sent to every resuming client: `before` is the seq of its predecessor. */
export interface HistoryEntry extends Chunk {
  created_at: number;
}

export const historyEntry = ({ channel, seq, created_at }: StoredMessage, bytes: Buffer): HistoryEntry => ({
  bytes,
  count: 1,
  channel,
  before: seq - 1,
  transient: false,
  created_at: Date.parse(created_at),
});

/**
 * Newest frames of one channel, cached so that many clients that reconnect at once need no query each.
 */
export class History {
  /** Bytes that all channels of a node may keep. */
  static readonly BUDGET = 64 * 1024 * 1024;
  private static readonly MESSAGES = 256;
  private static readonly BYTES = 256 * 1024;

  bytes = 0;
  private entries: HistoryEntry[] = [];

  /** Returns by how many bytes the history grew (negative when it shrank). */
  add(entry: HistoryEntry): number {
    const before = this.bytes;
    this.entries.push(entry);
    this.bytes += entry.bytes.length;
    if (this.entries.length > 2 * History.MESSAGES || this.bytes > History.BYTES) {
      // Cut by half in one go: shifting one entry per message would move the array each time.
      let out = 0;
      while (
        this.entries.length - out > History.MESSAGES ||
        (this.bytes > History.BYTES / 2 && out < this.entries.length)
      ) {
        this.bytes -= this.entries[out++]!.bytes.length;
      }
      this.entries.splice(0, out);
    }
    return this.bytes - before;
  }

  /** Frames after `seq`, at most `limit` and about `max_bytes`; null when the first of them is not here. */
  after(seq: number, limit: number, max_bytes: number): HistoryEntry[] | null {
    const first = this.entries[0];
    if (!first || first.before > seq) return null;
    const start = seq - first.before;
    const page: HistoryEntry[] = [];
    let bytes = 0;
    for (let i = start; i < this.entries.length && page.length < limit; i += 1) {
      const entry = this.entries[i]!;
      if (page.length > 0 && bytes + entry.bytes.length > max_bytes) break;
      page.push(entry);
      bytes += entry.bytes.length;
    }
    return page;
  }

  /** Returns the bytes that it gave up. */
  clear(): number {
    const freed = this.bytes;
    this.entries = [];
    this.bytes = 0;
    return freed;
  }
}
