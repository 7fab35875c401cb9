import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Caller } from '../../access/caller';
import { textFrame } from './frames';
import { CLOSE, LIMITS } from './limits';
import { errorText, type SocketErrorCode } from './protocol';
import type { Subscription } from './channel';
import { SendQueue, type Chunk } from './send-queue';
import { kernelBacklog, write, writeAll } from './socket-write';

const EMPTY = Buffer.alloc(0);
/** Bytes handed to the socket at once; more waits until they went. */
const WRITE_BYTES = 256 * 1024;

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
  /** The beat at which its credential was last looked at. */
  checked_at_beat = 0;
  window_start = 0;
  window_count = 0;
  waits_for_window = false;
  readonly queue = new SendQueue();
  private in_flight = 0;
  private backlog = 0;
  private waiting: (() => void)[] | null = null;

  constructor(
    readonly id: string,
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
    return { messages: this.queue.messages + this.in_flight, bytes: this.queue.bytes + kernelBacklog(this.socket) };
  }

  /** Whether so much more fits the bounded queue. A socket that takes everything has no queue. */
  fits(count: number, bytes: number): boolean {
    return !this.blocked || this.queue.fits(count, bytes);
  }

  /** Puts a chunk behind what waits; {@link pump} sends it. The caller has asked {@link fits}. */
  enqueue(chunk: Chunk): void {
    this.queue.push(chunk);
  }

  /** Sends as much as the socket takes. */
  pump(): void {
    while (!this.queue.empty && !this.blocked) {
      if (!this.socket.writable) return;
      const chunk = this.queue.single();
      const taken = chunk === null ? this.write(this.queue.next(WRITE_BYTES)) : this.writeOne(chunk);
      if (taken) this.in_flight = 0;
      else this.block();
    }
    if (this.waiting !== null && this.queue.empty && !this.blocked) this.wake();
  }

  private writeOne({ bytes, count }: Chunk): boolean {
    this.in_flight = count;
    return write(this.socket, bytes);
  }

  /** Several chunks in one system call. True when the socket took them all. */
  private write(chunks: readonly Chunk[]): boolean {
    for (const { count } of chunks) this.in_flight += count;
    return writeAll(
      this.socket,
      chunks.map(({ bytes }) => bytes),
    );
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
    if (!this.open || (!this.blocked && this.queue.empty)) return Promise.resolve();
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
    if (this.blocked && (this.queue.length > 4 * LIMITS.queue_messages || this.queue.bytes > 2 * LIMITS.queue_bytes))
      return this.cut();
    this.enqueue({ bytes, count: 0, channel: null, before: 0, transient: true });
    this.pump();
  }

  error(code: SocketErrorCode, channel?: string): void {
    this.send(errorText(code, channel));
  }

  /** Sends what waits, then an error when one is given, then the close frame. */
  close(code: number, reason: string, error?: SocketErrorCode): void {
    if (this.closing) return;
    if (error) this.error(error);
    if (this.closing) return; // `error` may have cut a client that does not read
    this.closing = true;
    if (this.socket.writable) this.write(this.queue.next(Infinity));
    this.queue.clear();
    this.ws.close(code, reason);
    this.wake();
  }

  /** The socket is gone: whoever waits for it goes on, and sees it closed. */
  ended(): void {
    this.closing = true;
    this.queue.clear();
    this.wake();
  }

  /**
   * Ends a socket that does not read: the close frame is queued, and the connection destroyed when the ticker comes by.
   */
  cut(): void {
    this.queue.clear();
    this.closing = true;
    this.ws.close(CLOSE.stalled, 'STALLED');
    this.wake();
  }
}
