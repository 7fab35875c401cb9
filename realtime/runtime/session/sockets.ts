import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { WebSocket, WebSocketServer, type ServerOptions } from 'ws';
import type { Caller } from '../../../access/authentication/caller';
import type { Logger } from '../../../engines/log/port';
import type { Hub } from '../delivery/hub';
import { CLOSE, LIMITS } from '../channel/limits';
import type { Messages } from '../channel/messages';
import { clock, Session } from './session';
import { SharedListeners } from '../delivery/shared-listeners';

export interface SocketsDeps {
  hub: Hub;
  messages: Messages;
  log: Logger;
  /** Told of each new session, before anything else is done with it. */
  onOpened(session: Session): void;
  /** Called for each connection that has ended, with its session or before it had one. */
  onGone(caller: Caller): void;
}

const CLOSE_HANDSHAKE_MS = 5_000;
/** Longest close handshake after a refused message, because a client may flood on, and its address has few sockets. */
const REFUSED_HANDSHAKE_MS = 1_000;
/** Codes of refused messages: of Lumio, and of `ws` for frames that break the protocol. */
const REFUSALS: ReadonlySet<number> = new Set([CLOSE.refused, CLOSE.too_large, 1002, 1003, 1007]);

/** `ws` adds limits that its types do not know yet. */
interface HardenedOptions extends ServerOptions {
  maxFragments: number;
  maxBufferedChunks: number;
  closeTimeout: number;
}

/** Members of `ws` and Node on a connection that their types do not declare. */
interface Inside {
  /** Of `ws`: cuts what comes into frames. */
  _receiver?: object | null;
  /** Of the socket, once it was asked for: the peer's address, which can be asked for again. */
  _peername?: object | null;
}

const of_connections = new SharedListeners();
const of_receivers = new SharedListeners();

/** Handlers of a connection's events. */
interface SocketEvents {
  message(session: Session, data: Buffer, is_binary: boolean): void;
  ping(session: Session, data: Buffer): void;
  pong(session: Session): void;
  error(session: Session, error: Error): void;
  close(session: Session): void;
}

/**
 * A connection with its session on it. What `ws` emits is handed on without listeners: a table of five of them would be
 * the largest part of an idle socket.
 */
class SessionSocket extends WebSocket {
  private session: Session | null = null;
  private events: SocketEvents | null = null;

  begin(session: Session, events: SocketEvents): void {
    this.session = session;
    this.events = events;
    of_connections.share(this);
    const { _receiver: receiver } = this as Inside;
    if (receiver) of_receivers.share(receiver);
    const inside = session.socket as Inside;
    if (inside._peername) inside._peername = null;
  }

  override emit(event: string | symbol, ...given: unknown[]): boolean {
    const { session, events } = this;
    if (session === null || events === null || !Object.hasOwn(events, event)) return super.emit(event, ...given);
    // The names and what comes with them are those of the documentation of `ws`.
    (events[event as keyof SocketEvents] as (session: Session, ...given: unknown[]) => void)(session, ...given);
    return true;
  }

  /**
   * Called by `ws` itself when a frame breaks the protocol or its limits: an oversized message gets its error first.
   */
  override close(code?: number, data?: string | Buffer): void {
    const oversized = code === CLOSE.too_large || code === 1008;
    if (oversized && this.session && !this.session.closing && this.readyState === WebSocket.OPEN) {
      this.session.close(CLOSE.too_large, 'MESSAGE_TOO_LARGE', 'MESSAGE_TOO_LARGE');
      return;
    }
    if (code !== undefined && REFUSALS.has(code)) setTimeout(() => this.terminate(), REFUSED_HANDSHAKE_MS).unref();
    super.close(code, data);
  }
}

/**
 * The connections of one node, from the 101 to their end: each becomes a session, and what it says goes to `messages`.
 */
export class Sockets {
  readonly sessions = new Map<string, Session>();
  private readonly server: WebSocketServer;

  constructor(private readonly deps: SocketsDeps) {
    const options: HardenedOptions = {
      noServer: true,
      WebSocket: SessionSocket,
      clientTracking: false,
      perMessageDeflate: false,
      autoPong: false,
      maxPayload: LIMITS.payload_bytes,
      maxFragments: LIMITS.fragments,
      maxBufferedChunks: LIMITS.buffered_chunks,
      closeTimeout: CLOSE_HANDSHAKE_MS,
    };
    this.server = new WebSocketServer(options);
  }

  /** Answers the upgrade of somebody who may come in. */
  open(req: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): void {
    let opened = false;
    try {
      // Calls back at once, or has answered a handshake that is wrong.
      this.server.handleUpgrade(req, socket, head, (ws) => {
        opened = true;
        this.opened(ws as SessionSocket, socket as Socket, caller);
      });
    } finally {
      if (!opened) this.deps.onGone(caller);
    }
  }

  /** Ends what is still open at once, and takes no more. */
  end(): void {
    for (const session of this.sessions.values()) {
      session.ws.terminate();
      this.forget(session);
    }
    this.server.close();
  }

  private opened(ws: SessionSocket, socket: Socket, caller: Caller): void {
    const session = new Session(uuidv7(), ws, socket, caller, this.onBlocked);
    ws.begin(session, this.events);
    this.sessions.set(session.id, session);
    this.deps.onOpened(session);
  }

  private forget(session: Session): void {
    for (const subscription of [...session.subscriptions]) this.deps.hub.leave(subscription);
  }

  private readonly onBlocked = (session: Session): void => void this.deps.hub.blocked.add(session);

  private readonly events: SocketEvents = {
    // Node buffers (the default binary type) are never arrays or ArrayBuffers here.
    message: (session, data, is_binary) => this.deps.messages.received(session, data, is_binary),
    ping: (session, data) => this.deps.messages.pinged(session, data),
    pong: (session) => void (session.last_seen = clock()),
    error: (session, error) => this.deps.log.debug({ err: error, session: session.id }, 'a socket failed'),
    close: (session) => {
      session.closing = true;
      this.sessions.delete(session.id);
      this.deps.hub.blocked.delete(session);
      this.forget(session);
      session.ended();
      this.deps.onGone(session.caller);
    },
  };
}
