import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Caller } from '../../access/caller';
import { textFrame } from './frames';
import { CLOSE, LIMITS } from './limits';
import { errorText, type SocketErrorCode } from './protocol';
import type { Subscription } from './channel';

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

const EMPTY = Buffer.alloc(0);
/** Bytes handed to the socket at once; more waits until they went. */
const WRITE_BYTES = 256 * 1024;

/** Bytes of the write under way that the kernel has not taken; falls while a large frame leaves slowly. */
function kernelBacklog(socket: Socket): number {
  const handle = (socket as Socket & { _handle?: { writeQueueSize?: number } | null })._handle;
  return handle?.writeQueueSize ?? 0;
}

/**
 * One connected client and its writer. All outgoing frames pass through here: a healthy socket is written at once, one
 * that did not take everything is "blocked", and what comes meanwhile waits here, bounded. Progress, not the amount
 * that waits, tells slow from busy.
 */
export class Session {
  last_seen: number;
  /** When the socket last took anything; Unix ms. */
  progress_at: number;
  /** True from a write that the kernel did not take whole until it has. */
  blocked = false;
  closing = false;
  subscriptions: Subscription[] = [];
  /** A client message is being worked on; the next ones wait in the inbox. */
  working = false;
  /** Client messages that wait, `null` among them for one that is too large; null while none does. */
  inbox: (string | null)[] | null = null;
  /** The last Ping that came too fast to be answered at once. */
  ping: Buffer | null = null;
  window_start = 0;
  window_count = 0;
  waits_for_window = false;
  private queue: Chunk[] | null = null;
  private queued = 0;
  private queued_bytes = 0;
  private in_flight = 0;
  private backlog = 0;
  private waiting: (() => void)[] | null = null;

  constructor(
    readonly id: string,
    readonly number: number,
    readonly ws: WebSocket,
    readonly socket: Socket,
    public caller: Caller,
    now: number,
    /** Told when the socket blocks, so that someone watches its progress. */
    private readonly onBlocked: (session: Session) => void,
  ) {
    this.last_seen = now;
    this.progress_at = now;
  }

  get open(): boolean {
    return !this.closing && this.ws.readyState === WebSocket.OPEN;
  }

  /** What waits for the socket; for metrics. */
  get backlogged(): { messages: number; bytes: number } {
    return { messages: this.queued + this.in_flight, bytes: this.queued_bytes + this.socket.writableLength };
  }

  /** Whether `count` messages of `bytes` fit the bounded queue. A socket that takes everything has no queue. */
  fits(count: number, bytes: number): boolean {
    if (!this.blocked) return true;
    return this.queued + count <= LIMITS.queue_messages && this.queued_bytes + bytes <= LIMITS.queue_bytes;
  }

  /**
   * The channel that fills the most of the queue, when that is more than `channel` would with one more chunk; null when
   * none does.
   */
  heavierThan(channel: string, { count, bytes }: Pick<Chunk, 'count' | 'bytes'>): string | null {
    const shares = new Map<string, number>();
    const add = (name: string, messages: number, size: number) =>
      shares.set(name, (shares.get(name) ?? 0) + messages / LIMITS.queue_messages + size / LIMITS.queue_bytes);
    for (const chunk of this.queue ?? []) if (chunk.channel) add(chunk.channel, chunk.count, chunk.bytes.length);
    add(channel, count, bytes.length);
    let heaviest = channel;
    for (const [name, share] of shares) if (share > shares.get(heaviest)!) heaviest = name;
    return heaviest === channel ? null : heaviest;
  }

  /** Puts a chunk behind what waits; {@link pump} sends it. The caller has asked {@link fits}. */
  enqueue(chunk: Chunk): void {
    (this.queue ??= []).push(chunk);
    this.queued += chunk.count;
    this.queued_bytes += chunk.bytes.length;
  }

  /** Sends as much as the socket takes. */
  pump(): void {
    while (this.queue !== null && !this.blocked) {
      if (!this.socket.writable) return;
      const queue = this.queue;
      if (queue.length === 1) {
        this.queue = null;
        this.sent(queue[0]!);
        this.socket.write(queue[0]!.bytes);
      } else {
        this.writeMany(queue);
      }
      if (this.socket.writableLength > 0) this.block();
      else this.in_flight = 0;
    }
    if (this.queue === null && !this.blocked && this.waiting) this.wake();
  }

  /** Several chunks in one system call. */
  private writeMany(queue: Chunk[]): void {
    let bytes = 0;
    let taken = 0;
    this.socket.cork();
    while (taken < queue.length && (taken === 0 || bytes + queue[taken]!.bytes.length <= WRITE_BYTES)) {
      const chunk = queue[taken++]!;
      bytes += chunk.bytes.length;
      this.sent(chunk);
      this.socket.write(chunk.bytes);
    }
    this.queue = taken === queue.length ? null : queue.slice(taken);
    this.socket.uncork();
  }

  private sent(chunk: Chunk): void {
    this.queued -= chunk.count;
    this.queued_bytes -= chunk.bytes.length;
    this.in_flight += chunk.count;
  }

  private block(): void {
    this.blocked = true;
    this.progress_at = Date.now();
    this.backlog = kernelBacklog(this.socket);
    // Called when all before it has been taken: the one sure sign, at any size. Made only for sockets that fall behind.
    this.socket.write(EMPTY, () => this.drained());
    this.onBlocked(this);
  }

  private drained(): void {
    this.blocked = false;
    this.in_flight = 0;
    this.progress_at = Date.now();
    if (!this.closing) this.pump();
    else this.wake();
  }

  /**
   * Milliseconds since the socket last took a byte; 0 when nothing waits. Looks at the kernel, so call it from a
   * ticker.
   */
  stalledFor(now: number): number {
    if (!this.blocked) return 0;
    const backlog = kernelBacklog(this.socket);
    if (backlog !== this.backlog) {
      this.backlog = backlog;
      this.progress_at = now;
    }
    return now - this.progress_at;
  }

  /** Resolves when everything queued was taken by the socket, or the session ended: the pace of a replay. */
  writable(): Promise<void> {
    if (!this.open || (!this.blocked && this.queue === null)) return Promise.resolve();
    return new Promise((resolve) => (this.waiting ??= []).push(resolve));
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = null;
    for (const resolve of waiting ?? []) resolve();
  }

  /** An answer to this session alone. A client that asks and asks without reading the answers is cut. */
  send(text: string): void {
    this.sendFrame(textFrame(text));
  }

  sendFrame(bytes: Buffer): void {
    if (!this.open) return;
    if (this.blocked && this.queue !== null && this.queue.length > 4 * LIMITS.queue_messages) return this.cut();
    this.enqueue({ bytes, count: 0, channel: null, before: 0, transient: true });
    this.pump();
  }

  error(code: SocketErrorCode, channel?: string): void {
    this.send(errorText(code, channel));
  }

  /**
   * Takes back what waits for a channel: how many messages, the seq before the first of them, and whether some are not
   * stored.
   */
  discard(channel: string): { count: number; before: number; transient: boolean } {
    const taken = { count: 0, before: -1, transient: false };
    if (this.queue === null) return taken;
    const kept: Chunk[] = [];
    for (const chunk of this.queue) {
      if (chunk.channel !== channel) {
        kept.push(chunk);
        continue;
      }
      if (taken.before < 0) taken.before = chunk.before;
      taken.count += chunk.count;
      taken.transient ||= chunk.transient;
      this.queued -= chunk.count;
      this.queued_bytes -= chunk.bytes.length;
    }
    this.queue = kept.length === 0 ? null : kept;
    return taken;
  }

  /** Sends what waits, then an error when one is given, then the close frame. */
  close(code: number, reason: string, error?: SocketErrorCode): void {
    if (this.closing) return;
    if (error) this.error(error);
    if (this.closing) return; // `error` may have cut a client that does not read
    this.closing = true;
    if (this.queue !== null && this.socket.writable) {
      this.socket.cork();
      for (const chunk of this.queue) this.socket.write(chunk.bytes);
      this.socket.uncork();
    }
    this.queue = null;
    this.ws.close(code, reason);
    this.wake();
  }

  /** The socket is gone: whoever waits for it goes on, and sees it closed. */
  ended(): void {
    this.closing = true;
    this.queue = null;
    this.wake();
  }

  /**
   * Ends a socket that does not read: the close frame is queued, and the connection destroyed when the ticker comes by.
   */
  cut(): void {
    this.queue = null;
    this.queued = this.queued_bytes = 0;
    this.closing = true;
    this.ws.close(CLOSE.stalled, 'STALLED');
    this.wake();
  }
}
