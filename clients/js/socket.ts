/** What the client needs of a WebSocket: browsers' own, Node's (from version 22 on) and that of `ws` have it. */
export interface SocketLike {
  addEventListener(type: 'message' | 'error' | 'close', listener: (event: SocketEvent) => void): void;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

/** What is read of its events. */
export interface SocketEvent {
  type: string;
  data?: unknown;
  code?: number;
  reason?: string;
  /** Of an error, where the runtime tells. */
  message?: string;
}

/** Opens a connection; default: with the token in the query, which is all that browsers can do. */
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

/** One message of the server. */
export interface ServerMessage {
  type: string;
  channel?: string;
  event_type?: string;
  id?: string;
  data?: unknown;
  code?: string;
  message?: string;
  recovered?: boolean;
  session_id?: string;
  server_version?: string;
}

/** Why a connection ended. `code` is a WebSocket close code, or 0 where there is none. */
export interface Loss {
  code: number;
  reason: string;
}

export interface ConnectionOptions {
  /** Longest time until `welcome`, and for an answer to a ping; milliseconds. */
  patience_ms: number;
  ping_ms: number;
  onMessage(message: ServerMessage): void;
  /** Once, whatever ended it; nothing comes after it. */
  onLost(loss: Loss): void;
}

/**
 * One connection, watched: it is given up when `welcome` does not come, and when a ping is not answered, since a
 * network that vanished says nothing.
 */
export class Connection {
  private over = false;
  private welcomed = false;
  private readonly begun_at = now();
  private pinged_at = now();
  /** A ping is out and nothing has come since. */
  private asking = false;
  private failure = '';
  private readonly beat: ReturnType<typeof setInterval>;

  constructor(
    private readonly socket: SocketLike,
    private readonly options: ConnectionOptions,
  ) {
    socket.addEventListener('message', ({ data }) => this.heard(data));
    socket.addEventListener('error', ({ message = '' }) => (this.failure = message));
    socket.addEventListener('close', ({ code = 0, reason }) => this.close({ code, reason: reason || this.failure }));
    this.beat = setInterval(() => this.watch(), Math.min(options.ping_ms, options.patience_ms) / 4);
  }

  send(message: object): void {
    if (!this.over) this.socket.send(JSON.stringify(message));
  }

  /** Ends it; a server that does not answer the goodbye is not waited for. */
  close(loss: Loss): void {
    if (this.over) return;
    this.over = true;
    clearInterval(this.beat);
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
    // A hidden page's timers may sleep longer than the server's patience, but what arrives still wakes it.
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
