import { LIMITS } from '../channel/limits';

/** Framed messages that leave together. Shared by every session that gets them: never changed after it was made. */
export interface Chunk {
  bytes: Buffer;
  /** Messages in it. */
  count: number;
  /** Null for answers to one session, which no channel's end takes back. */
  channel: string | null;
  /** Seq of the channel before the first message in it: where a subscription stands that did not get this chunk. */
  before: number;
  /** Holds messages that are not stored, so the history cannot stand in for it. */
  transient: boolean;
}

/**
 * Backlog of a session's socket, ordered and bounded. A socket that takes everything has no backlog and no list.
 */
export class SendQueue {
  /** The one that waits longest; most sockets never have a second one, and need no list. */
  private first: Chunk | null = null;
  private rest: Chunk[] | null = null;
  messages = 0;
  bytes = 0;

  get empty(): boolean {
    return this.first === null;
  }

  /** Chunks that wait. */
  get length(): number {
    return this.first === null ? 0 : 1 + (this.rest?.length ?? 0);
  }

  /** Whether this much more stays within the bounds. */
  fits(count: number, bytes: number): boolean {
    return this.messages + count <= LIMITS.queue_messages && this.bytes + bytes <= LIMITS.queue_bytes;
  }

  /**
   * The channel that fills the most of the queue, when that is more than `channel` would with one more chunk; null when
   * none does.
   */
  heavierThan(channel: string, { count, bytes }: Pick<Chunk, 'count' | 'bytes'>): string | null {
    const shares = new Map<string, number>();
    const add = (name: string, messages: number, size: number) =>
      shares.set(name, (shares.get(name) ?? 0) + messages / LIMITS.queue_messages + size / LIMITS.queue_bytes);
    for (const chunk of this.all()) if (chunk.channel) add(chunk.channel, chunk.count, chunk.bytes.length);
    add(channel, count, bytes.length);
    let heaviest = channel;
    for (const [name, share] of shares) if (share > shares.get(heaviest)!) heaviest = name;
    return heaviest === channel ? null : heaviest;
  }

  push(chunk: Chunk): void {
    if (this.first === null) this.first = chunk;
    else (this.rest ??= []).push(chunk);
    this.messages += chunk.count;
    this.bytes += chunk.bytes.length;
  }

  /** The chunk that waits alone, taken; null when none waits, or several. */
  single(): Chunk | null {
    const { first } = this;
    if (first === null || this.rest !== null) return null;
    this.clear();
    return first;
  }

  /** The next chunks that are together no larger than this, at least one where one waits; they wait no more. */
  next(max_bytes: number): readonly Chunk[] {
    const chunks = this.all();
    let bytes = 0;
    let taken = 0;
    while (taken < chunks.length && (taken === 0 || bytes + chunks[taken]!.bytes.length <= max_bytes)) {
      bytes += chunks[taken]!.bytes.length;
      this.messages -= chunks[taken]!.count;
      taken += 1;
    }
    this.bytes -= bytes;
    this.keep(chunks.slice(taken));
    return chunks.slice(0, taken);
  }

  /**
   * Takes back what waits for a channel: how many messages, the seq before the first of them, and whether some are not
   * stored.
   */
  discard(channel: string): { count: number; before: number; transient: boolean } {
    const taken = { count: 0, before: -1, transient: false };
    if (this.first === null) return taken;
    const kept: Chunk[] = [];
    for (const chunk of this.all()) {
      if (chunk.channel !== channel) {
        kept.push(chunk);
        continue;
      }
      if (taken.before < 0) taken.before = chunk.before;
      taken.count += chunk.count;
      taken.transient ||= chunk.transient;
      this.messages -= chunk.count;
      this.bytes -= chunk.bytes.length;
    }
    this.keep(kept);
    return taken;
  }

  clear(): void {
    this.first = this.rest = null;
    this.messages = this.bytes = 0;
  }

  private all(): readonly Chunk[] {
    return this.first === null ? [] : this.rest === null ? [this.first] : [this.first, ...this.rest];
  }

  private keep([first, ...rest]: readonly Chunk[]): void {
    this.first = first ?? null;
    this.rest = rest.length === 0 ? null : rest;
  }
}
