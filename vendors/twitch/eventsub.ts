import { Backoff } from '../../lib/async/retry';
import { pause } from '../../lib/async/signal';
import { destination } from '../http/destinations';
import { Socket, type Welcome, WELCOME_MS } from './eventsub-socket';
import { EventSubEnded, type EventSubFrame, type EventSubListener, type EventSubSession } from './port';
import { readTime } from '../../lib/time/vendor-times';

export interface EventSubOptions {
  /** `wss://eventsub.wss.twitch.tv/ws`. */
  url: string;
  /** For tests alone: addresses of this machine, without TLS too. */
  allow_loopback: boolean;
  /** Requested interval, 10 to 600; the welcome names the granted one. Default 30. */
  keepalive_seconds?: number;
}

/** Longest silence that Twitch grants; a timer of more than some weeks would run at once. */
const MAX_KEEPALIVE_S = 600;
/** Longest id of a session and longest time that are kept: Twitch's have some 60 and 30 characters. */
const MAX_ID = 500;
const MAX_TIME = 64;
/** A new socket that fails is tried again while the old one is read; Twitch closes that after some 30 s. */
const MOVE = { first_ms: 250, most_ms: 2_000 };
/** How long Twitch may take to answer a goodbye; to that of a socket it has moved a session from, too. */
const CLOSE_MS = 1_000;
const LEAVE_MS = 3_000;
const TWITCH_HOSTS = ['*.twitch.tv'];

/**
 * Opens a session of EventSub: frames of five kinds over a socket that only answers pings. When Twitch moves the
 * session, the old socket is read until the new one is welcome, so that nothing falls between them.
 * @throws EventSubEnded when there is no welcome
 */
export async function openEventSub(
  options: EventSubOptions,
  listener: EventSubListener,
  signal: AbortSignal,
): Promise<EventSubSession> {
  const url = new URL(options.url);
  url.searchParams.set('keepalive_timeout_seconds', String(options.keepalive_seconds ?? 30));
  const session = new Session(options, listener);
  await session.begin(url, signal);
  return session;
}

class Session implements EventSubSession {
  session_id = '';
  readonly ended: Promise<void>;
  private outcome!: { resolve(): void; reject(error: Error): void };
  private current: Socket | undefined;
  private moving: Promise<void> | undefined;
  /** Sockets that are left, and read until Twitch closes them. */
  private leaving: Promise<unknown> = Promise.resolve();
  private readonly over = new AbortController();
  private paused = false;
  /** Start of the pause whose backlog is still being read, and the last resume; Unix milliseconds by our clock. */
  private behind_since: number | undefined;
  private resumed_at = 0;
  /** Our clock less Twitch's. */
  private ahead_ms = 0;

  constructor(
    private readonly options: EventSubOptions,
    private readonly listener: EventSubListener,
  ) {
    this.ended = new Promise((resolve, reject) => (this.outcome = { resolve, reject }));
    this.ended.catch(() => undefined);
  }

  async begin(url: URL, signal: AbortSignal): Promise<void> {
    const socket = this.socket(url);
    const onAbort = () => socket.fail(new EventSubEnded('given up'));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      this.take(socket, await socket.welcome);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  now(): string {
    return new Date(Date.now() - this.ahead_ms).toISOString();
  }

  pause(): void {
    this.paused = true;
    this.behind_since ??= Date.now();
    this.current?.pause();
  }

  resume(): void {
    this.paused = false;
    this.resumed_at = Date.now();
    this.current?.resume();
  }

  async close(): Promise<void> {
    this.over.abort();
    this.outcome.resolve();
    await this.current?.close(CLOSE_MS);
    await this.moving;
    await this.leaving;
  }

  private socket(url: URL): Socket {
    const { allow_loopback } = this.options;
    const own = new URL(this.options.url);
    // The reconnect address comes from a received frame: only Twitch's hosts are allowed.
    const hosts = [...TWITCH_HOSTS, own.host];
    destination(url.href.replace(/^ws/, 'http'), { hosts, allow_loopback });
    const socket: Socket = new Socket(url, allow_loopback, {
      onFrame: (text) => this.onFrame(socket, text),
      full: () => this.listener.full?.() ?? false,
      onEnd: (error) => this.onEnd(socket, error),
    });
    return socket;
  }

  private take(socket: Socket, welcome: Welcome): void {
    const before = this.current;
    this.current = socket;
    this.session_id = welcome.session_id;
    const at = readTime(welcome.at);
    if (at !== null) this.ahead_ms = Date.now() - at;
    if (this.paused) socket.pause();
    if (before) this.leave(before);
    if (this.over.signal.aborted) this.leave(socket);
  }

  private leave(socket: Socket): void {
    this.leaving = Promise.all([this.leaving, socket.close(LEAVE_MS)]);
  }

  private onFrame(socket: Socket, text: string): void {
    const received_at = Date.now();
    const value = parsed(text);
    const metadata = membersOf(membersOf(value)['metadata']);
    const stamp = metadata['message_timestamp'];
    const sent_at = (readTime(stamp) ?? Number.NaN) + this.ahead_ms;
    // Frames sent after the last resume did not wait for us.
    if (!this.paused && sent_at >= this.resumed_at) this.behind_since = undefined;
    const { behind_since } = this;
    const alive_at = behind_since === undefined ? received_at : Math.min(received_at, sent_at || behind_since);
    this.listener.onAlive(alive_at);
    const message_type = typeof metadata['message_type'] === 'string' ? metadata['message_type'] : '';
    switch (message_type) {
      case 'session_keepalive':
        return;
      case 'session_welcome':
        return socket.onWelcome(welcomeOf(value, metadata));
      case 'session_reconnect':
        // One that is left has nothing left to move.
        if (socket === this.current)
          this.move(membersOf(membersOf(membersOf(value)['payload'])['session'])['reconnect_url']);
        return;
    }
    // Its wait for us does not count: we paused, and Twitch had sent it in time.
    const age_ms = behind_since === undefined ? received_at - sent_at : Math.max(behind_since - sent_at, 0);
    this.listener.onFrame({
      ...{ text, value, message_type, received_at, alive_at },
      age_ms: Number.isFinite(age_ms) ? age_ms : undefined,
    } satisfies EventSubFrame);
  }

  private onEnd(socket: Socket, error: EventSubEnded): void {
    // The old one of a move may end before its successor is there: then that one decides.
    if (socket !== this.current || this.moving !== undefined) return;
    this.fail(error);
  }

  private fail(error: EventSubEnded): void {
    this.over.abort();
    this.outcome.reject(error);
  }

  private move(address: unknown): void {
    if (this.over.signal.aborted) return;
    // Asked again before it is done: one move is enough.
    this.moving ??= this.moved(address).then(
      () => {
        this.moving = undefined;
        if (this.current?.end) this.fail(this.current.end);
      },
      (error: unknown) => {
        this.moving = undefined;
        const failed = new EventSubEnded('Twitch moved the session, and it did not come up there', 0, { cause: error });
        // The old socket may go on for a while; what comes then is not lost.
        if (this.current === undefined || this.current.end) this.fail(this.current?.end ?? failed);
        else void this.current.gone.then((end) => this.fail(end));
      },
    );
  }

  private async moved(address: unknown): Promise<void> {
    if (typeof address !== 'string' || !URL.canParse(address)) throw new EventSubEnded('no reconnect_url');
    const backoff = new Backoff(MOVE);
    for (;;) {
      const socket = this.socket(new URL(address));
      try {
        this.take(socket, await socket.welcome);
        return;
      } catch (error) {
        if (this.over.signal.aborted) return;
        // Without the old socket there is nothing left to be carried over.
        if (this.current === undefined || this.current.end) throw error;
        await pause(backoff.next(), this.over.signal);
      }
    }
  }
}

type Members = Readonly<Record<string, unknown>>;

const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The receiver parses the text.
    return undefined;
  }
}

const isShort = (time: unknown): time is string => typeof time === 'string' && time.length <= MAX_TIME;

function welcomeOf(value: unknown, metadata: Members): Welcome | undefined {
  const session = membersOf(membersOf(membersOf(value)['payload'])['session']);
  const { id, keepalive_timeout_seconds: seconds, connected_at } = session;
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID) return undefined;
  const keepalive_ms =
    typeof seconds === 'number' && seconds > 0 ? Math.min(seconds, MAX_KEEPALIVE_S) * 1000 : WELCOME_MS;
  const at = [metadata['message_timestamp'], connected_at].find(isShort);
  return { session_id: id, keepalive_ms, at: at ?? new Date().toISOString() };
}
