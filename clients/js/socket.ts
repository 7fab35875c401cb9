import type { Every } from './options';
/** Part of a WebSocket that the client uses: that of browsers, of Node (from version 22 on) and of `ws`. */
export interface SocketLike {
  addEventListener(type: 'message' | 'error' | 'close', listener: (event: SocketEvent) => void): void;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

/** Part of the socket's events that the client reads. */
export interface SocketEvent {
  type: string;
  data?: unknown;
  code?: number;
  reason?: string;
  /** Message of an error, where the runtime provides it. */
  message?: string;
}

/** Opens a connection. Default: with the token in the query, the only way in browsers. */
export type OpenSocket = (url: string, token: string | null) => SocketLike;

/** @throws Error where the runtime has no WebSocket of its own */
export function ownWebSocket(): OpenSocket {
  const { WebSocket } = globalThis as { WebSocket?: new (url: string) => SocketLike };
  if (WebSocket === undefined)
    throw new Error('This runtime has no WebSocket: pass `open`, which makes one of the package ws');
  return (url, token) => {
    const address = new URL(url);
    if (token !== null) address.searchParams.set('token', token);
    return new WebSocket(address.href);
  };
}

/** Message of the server. */
export interface ServerMessage {
  type: string;
  channel?: string;
  event_type?: string;
  id?: string;
  data?: unknown;
  code?: string;
  message?: string;
  recovered?: boolean;
  /** Of a message of an overlay or a widget that came before the subscription was resumed. */
  missed?: boolean;
  session_id?: string;
  server_version?: string;
}

/** Reason for the end of a connection. `code` is a WebSocket close code, or 0 without one. */
export interface Loss {
  code: number;
  reason: string;
}

export interface ConnectionOptions {
  /** Longest wait for `welcome` and for an answer to a ping; milliseconds. */
  patience_ms: number;
  ping_ms: number;
  /** Default: `setInterval`. */
  every?: Every | undefined;
  onMessage(message: ServerMessage): void;
  /** Called once for any end of the connection, as the last call. */
  onLost(loss: Loss): void;
}

/**
 * Connection with a watchdog: closes when `welcome` or the answer to a ping is missing, because a vanished network
 * gives no error.
 */
export class Connection {
  private over = false;
  private welcomed = false;
  private readonly begun_at = now();
  private pinged_at = now();
  /** A ping was sent and nothing was received since. */
  private asking = false;
  private failure = '';
  private readonly endBeat: () => void;

  constructor(
    private readonly socket: SocketLike,
    private readonly options: ConnectionOptions,
  ) {
    socket.addEventListener('message', ({ data }) => this.heard(data));
    socket.addEventListener('error', ({ message = '' }) => (this.failure = message));
    socket.addEventListener('close', ({ code = 0, reason }) => this.close({ code, reason: reason || this.failure }));
    const { every = byInterval, ping_ms, patience_ms } = options;
    this.endBeat = every(Math.min(ping_ms, patience_ms) / 4, () => this.watch());
  }

  send(message: object): void {
    if (!this.over) this.socket.send(JSON.stringify(message));
  }

  /** Ends the connection without waiting for the server's close frame. */
  close(loss: Loss): void {
    if (this.over) return;
    this.over = true;
    this.endBeat();
    this.socket.close();
    this.options.onLost(loss);
  }

  private heard(data: unknown): void {
    if (this.over) return;
    this.asking = false;
    const message = typeof data === 'string' ? parsed(data) : null;
    if (message === null) return;
    if (message.type === 'welcome') this.welcomed = true;
    this.options.onMessage(message);
    // Timers of a hidden page may sleep longer than the server's timeout, but messages still run this code.
    this.pingWhenDue();
  }

  private watch(): void {
    const { patience_ms } = this.options;
    if (!this.welcomed && now() - this.begun_at > patience_ms) this.close({ code: 0, reason: 'no welcome came' });
    else if (this.asking && now() - this.pinged_at > patience_ms) this.close({ code: 0, reason: 'no pong came' });
    else this.pingWhenDue();
  }

  private pingWhenDue(): void {
    if (!this.welcomed || this.asking || now() - this.pinged_at < this.options.ping_ms) return;
    this.pinged_at = now();
    this.asking = true;
    this.send({ type: 'ping' });
  }
}

const byInterval: Every = (ms, tick) => {
  const timer = setInterval(tick, ms);
  return () => clearInterval(timer);
};

export const now = (): number => performance.now();

function parsed(text: string): ServerMessage | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && typeof (value as ServerMessage).type === 'string'
      ? (value as ServerMessage)
      : null;
  } catch {
    return null;
  }
}
