import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Caller } from '../../../access/authentication/caller';
import { pongFrame, textFrame } from '../delivery/frames';
import { CLOSE, LIMITS } from '../channel/limits';
import { errorText, type SocketErrorCode } from '../channel/protocol';
import type { Subscription } from '../channel/channel';
import { SendQueue, type Chunk } from './send-queue';
import { kernelBacklog, write, writeAll } from '../delivery/socket-write';

const EMPTY = Buffer.alloc(0);
const UNASKED_PONG = pongFrame(EMPTY);
const NONE: readonly Subscription[] = [];
/** Bytes handed to the socket at once; more waits until they went. */
const WRITE_BYTES = 256 * 1024;

/** Milliseconds of the monotonic clock: a clock that is set right must make nobody seem silent. */
export const clock = (): number => Math.floor(performance.now());

/** A write that the kernel did not take whole. */
interface Stall {
  /** When the socket last took anything, by {@link clock}. */
  progress_at: number;
  /** Bytes of it that the kernel has not taken, when last looked at. */
  backlog: number;
  /** Messages in it. */
  messages: number;
}

/**
 * A connected client and its writer. All outgoing frames pass through here: a healthy socket is written at once, one
 * that did not take everything is "blocked", and later frames wait here, bounded. Progress, not the backlog,
 * distinguishes slow from busy. Most sockets are idle most of the time, so parts for busy ones are created on demand.
 */
export class Session {
  /** By {@link clock}. */
  last_seen: number;
  closing = false;
  subscriptions: readonly Subscription[] = NONE;
  /** A client message is being worked on; the next ones wait in the inbox. */
  working = false;
  /** Client messages that wait, `null` among them for one that is too large; null while none does. */
  inbox: (string | null)[] | null = null;
  /** The last Ping that came too fast to be answered at once. */
  ping: Buffer | null = null;
  /** The beat at which its credential was last looked at. */
  checked_at_beat = 0;
  /** By {@link clock}. */
  window_start = 0;
  window_count = 0;
  waits_for_window = false;
  /** From then on a bare ping costs nothing, by {@link clock}. */
  free_ping_at = 0;
  /** Messages since the last one that was valid. */
  refused_in_a_row = 0;
  private kept_queue: SendQueue | null = null;
  /** From a write that the kernel did not take whole until it has. */
  private stall: Stall | null = null;
  private waiting: (() => void)[] | null = null;

  constructor(
    readonly id: string,
    readonly ws: WebSocket,
    readonly socket: Socket,
    public caller: Caller,
    /** Told when the socket blocks, so that someone watches its progress. */
    private readonly onBlocked: (session: Session) => void,
  ) {
    this.last_seen = clock();
  }

  /** An array that grows keeps room for seventeen, and most sockets are on one channel for ever. */
  subscribed(subscription: Subscription): void {
    this.subscriptions = this.subscriptions.length === 0 ? [subscription] : [...this.subscriptions, subscription];
  }

  unsubscribed(subscription: Subscription): void {
    this.subscriptions = this.subscriptions.filter((other) => other !== subscription);
  }

  get open(): boolean {
    return !this.closing && this.ws.readyState === WebSocket.OPEN;
  }

  /** The kernel has not taken everything that was written. */
  get blocked(): boolean {
    return this.stall !== null;
  }

  /** Backlog of the socket; created on demand. */
  get queue(): SendQueue {
    return (this.kept_queue ??= new SendQueue());
  }

  private get nothing_waits(): boolean {
    return this.kept_queue === null || this.kept_queue.empty;
  }

  /** Size of the backlog, for metrics. */
  get backlogged(): { messages: number; bytes: number } {
    const { kept_queue: queue, stall, socket } = this;
    return {
      messages: (queue?.messages ?? 0) + (stall?.messages ?? 0),
      bytes: (queue?.bytes ?? 0) + kernelBacklog(socket),
    };
  }

  /** Whether this much more fits the bounded queue. A socket that takes everything has no queue. */
  fits(count: number, bytes: number): boolean {
    return !this.blocked || this.queue.fits(count, bytes);
  }

  /** Puts a chunk behind what waits; {@link pump} sends it. The caller has asked {@link fits}. */
  enqueue(chunk: Chunk): void {
    this.queue.push(chunk);
  }

  /** Takes back what waits for a channel: how many messages. */
  discard(channel: string): number {
    return this.nothing_waits ? 0 : this.queue.discard(channel).count;
  }

  /** Sends as much as the socket takes. */
  pump(): void {
    const queue = this.kept_queue;
    while (queue !== null && !queue.empty && this.stall === null) {
      if (!this.socket.writable) return;
      const chunk = queue.single();
      if (chunk === null) this.pumpMany(queue.next(WRITE_BYTES));
      else if (!write(this.socket, chunk.bytes)) this.block(chunk.count);
    }
    if (this.waiting !== null && this.nothing_waits && !this.blocked) this.wake();
  }

  private pumpMany(chunks: readonly Chunk[]): void {
    if (!this.write(chunks)) this.block(chunks.reduce((sum, { count }) => sum + count, 0));
  }

  /** Several chunks in one system call. True when the socket took them all. */
  private write(chunks: readonly Chunk[]): boolean {
    return writeAll(
      this.socket,
      chunks.map(({ bytes }) => bytes),
    );
  }

  private block(messages: number): void {
    this.stall = { progress_at: clock(), backlog: kernelBacklog(this.socket), messages };
    // Called when all before it has been taken: the one sure sign, at any size. Made only for sockets that fall behind.
    this.socket.write(EMPTY, () => this.drained());
    this.onBlocked(this);
  }

  private drained(): void {
    this.stall = null;
    if (!this.closing) this.pump();
    else this.wake();
  }

  /**
   * Milliseconds since the socket last took a byte; 0 when nothing waits. Looks at the kernel, so call it from a
   * ticker.
   */
  stalledFor(now: number): number {
    const { stall } = this;
    if (stall === null) return 0;
    const backlog = kernelBacklog(this.socket);
    if (backlog !== stall.backlog) {
      stall.backlog = backlog;
      stall.progress_at = now;
    }
    return now - stall.progress_at;
  }

  /** Resolves when everything queued was taken by the socket, or the session ended: the pace of a replay. */
  writable(): Promise<void> {
    if (!this.open || (!this.blocked && this.nothing_waits)) return Promise.resolve();
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
    if (this.nothing_waits && !this.blocked) {
      if (this.socket.writable && !write(this.socket, bytes)) this.block(0);
      return;
    }
    if (this.blocked && (this.queue.length > 4 * LIMITS.queue_messages || this.queue.bytes > 2 * LIMITS.queue_bytes))
      return this.cut();
    this.enqueue({ bytes, count: 0, channel: null, before: 0, transient: true });
    this.pump();
  }

  /**
   * Writes a Pong that nobody asked for: on a connection that is not read, the second write after its end fails. A
   * blocked socket gets no Pong, because its pending bytes fail in the same way.
   */
  probe(): void {
    if (this.nothing_waits && !this.blocked) this.sendFrame(UNASKED_PONG);
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
    if (this.socket.writable && !this.nothing_waits) this.write(this.queue.next(Infinity));
    this.kept_queue?.clear();
    this.ws.close(code, reason);
    this.wake();
  }

  /** The socket is gone: whoever waits for it goes on, and sees it closed. */
  ended(): void {
    this.closing = true;
    this.kept_queue?.clear();
    this.wake();
  }

  /**
   * Ends a socket that does not read: the close frame is queued, and the connection destroyed when the ticker comes by.
   */
  cut(): void {
    this.kept_queue?.clear();
    this.closing = true;
    this.ws.close(CLOSE.stalled, 'STALLED');
    this.wake();
  }
}
