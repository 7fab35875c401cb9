import { WebSocket } from 'ws';
import { closeGracefully } from '../../lib/async/close-gracefully';
import { guardedLookup } from '../http/addresses';
import { EventSubEnded } from './port';

/** A silence that Twitch did not promise to avoid is its end; the fifth more is what the network may take. */
const PATIENCE = 1.2;
/** How long a welcome may take; and the silence that is granted where Twitch does not say. */
export const WELCOME_MS = 10_000;
const MAX_BYTES = 1 << 20;

export interface Welcome {
  session_id: string;
  keepalive_ms: number;
  /** RFC 3339, Twitch's clock. */
  at: string;
}

interface SocketListener {
  onFrame(text: string): void;
  /** Asked of a socket that is left: nobody else lets it wait. */
  full(): boolean;
  onEnd(error: EventSubEnded): void;
}

/** A socket, from its welcome to its end. */
export class Socket {
  readonly welcome: Promise<Welcome>;
  /** Why it ended. */
  end: EventSubEnded | undefined;
  readonly gone: Promise<EventSubEnded>;
  private readonly ws: WebSocket;
  private welcomed!: { resolve(welcome: Welcome): void; reject(error: Error): void };
  private ending!: (error: EventSubEnded) => void;
  private timer: NodeJS.Timeout;
  private alive_at = performance.now();
  private silence_ms = WELCOME_MS;
  private closing = false;

  constructor(
    url: URL,
    allow_loopback: boolean,
    private readonly listener: SocketListener,
  ) {
    this.welcome = new Promise((resolve, reject) => (this.welcomed = { resolve, reject }));
    this.welcome.catch(() => undefined);
    this.gone = new Promise((resolve) => (this.ending = resolve));
    this.ws = new WebSocket(url, {
      maxPayload: MAX_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
      handshakeTimeout: WELCOME_MS,
      lookup: guardedLookup(allow_loopback),
    });
    this.ws.on('message', (data: Buffer) => {
      this.alive_at = performance.now();
      this.listener.onFrame(data.toString());
    });
    this.ws.on('error', (error) =>
      this.fail(new EventSubEnded(`the socket failed: ${error.message}`, 0, { cause: error })),
    );
    this.ws.on('close', (code, reason) => this.fail(new EventSubEnded(closeText(code, reason.toString()), code)));
    this.timer = setTimeout(() => this.look(), this.silence_ms);
  }

  onWelcome(welcome: Welcome | undefined): void {
    if (this.end) return;
    if (welcome === undefined) return this.fail(new EventSubEnded('a welcome without a session'));
    this.silence_ms = welcome.keepalive_ms * PATIENCE;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), this.silence_ms);
    this.welcomed.resolve(welcome);
  }

  pause(): void {
    if (!this.closing) this.ws.pause();
  }

  resume(): void {
    if (this.closing) return;
    this.alive_at = performance.now();
    this.ws.resume();
  }

  fail(error: EventSubEnded): void {
    if (this.end) return;
    this.end = error;
    clearTimeout(this.timer);
    this.ws.terminate();
    this.welcomed.reject(error);
    this.ending(error);
    this.listener.onEnd(error);
  }

  /** Sends the close frame and reads the frames sent before the peer received it; a silent peer is cut off in time. */
  async close(within_ms: number): Promise<void> {
    if (this.end) return;
    this.closing = true;
    await closeGracefully(this.ws, within_ms, () => this.listener.full());
    this.fail(new EventSubEnded('closed by us', 1000));
  }

  /**
   * Single timer for all frames: it compares with the time of the last one, and waits for the rest.
   *
   * @param read whether everything that has arrived was read: a process that was paused finds its timers due before it
   *   has read what was sent meanwhile, and Twitch sends nothing again
   */
  private look(read = false): void {
    if (this.end) return;
    const quiet_ms = performance.now() - this.alive_at;
    if (quiet_ms >= this.silence_ms && !this.ws.isPaused) {
      // Sockets are read between a timer and this.
      if (!read) return void setImmediate(() => this.look(true));
      this.fail(new EventSubEnded(`Twitch was silent for ${Math.round(quiet_ms / 1000)} s`));
      return;
    }
    const left_ms = Math.max(this.silence_ms - quiet_ms, 100);
    this.timer = setTimeout(() => this.look(), left_ms);
  }
}

/** Twitch's own close codes; others are the socket's. */
const CODES: ReadonlyMap<number, string> = new Map([
  [4000, 'internal server error'],
  [4001, 'we sent something'],
  [4002, 'a ping was not answered'],
  [4003, 'nothing was subscribed in time'],
  [4004, 'the time for moving the session is over'],
  [4005, 'network timeout'],
  [4006, 'network error'],
  [4007, 'the address to move to was not good'],
]);

const closeText = (code: number, reason: string): string =>
  `Twitch closed the socket: ${code} ${CODES.get(code) ?? reason.slice(0, 100)}`.trimEnd();
