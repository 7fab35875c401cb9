import { exponential, type Backoff } from './backoff';
import { tell, within } from './calls';
import type { ChannelName, MessageOf, WritableChannel } from './channels';
import {
  Refused,
  TIMING,
  type ClientOptions,
  type ClientState,
  type Problem,
  type SubscribeOptions,
  type Subscription,
  type Timing,
} from './options';
import { Connection, now, ownWebSocket, type Loss, type OpenSocket, type ServerMessage } from './socket';

/** A channel with listeners in this client. */
interface Heard {
  readonly name: string;
  readonly listeners: Set<{ deliver(message: ServerMessage): void; options: SubscribeOptions }>;
  /** `asked`: a subscribe is out; `on`: accepted; `off`: neither. */
  state: 'off' | 'asked' | 'on';
  last_id: string | null;
  /** When the server accepted the subscription. */
  on_since: number;
  /** Refused once, and not stable since. */
  refused: boolean;
  /** Waits before subscribing again after the channel was dropped. */
  readonly again: Backoff;
  timer: ReturnType<typeof setTimeout> | null;
  /** Set after a broadcast to the channel over this connection: a refusal may be about the broadcast. */
  broadcast: boolean;
  /** Set when the subscription was requested only to find out what a refusal was about. */
  doubted: boolean;
}

/** Errors after which a fresh token may help, once. Source: spec doc3 §4.1, "Client reconnection guidance". */
const AUTH_CODES: ReadonlySet<string> = new Set(['UNAUTHORIZED', 'FORBIDDEN', 'TOKEN_EXPIRED', 'TOKEN_REVOKED']);
const TOKEN_CLOSE = 4401;

/**
 * Client of Lumio's WebSocket: reconnects automatically, each time with a fresh token, and resumes its channels after
 * the last message received. Source: spec doc3 §4.1.
 */
export class LumioClient {
  private readonly timing: Timing;
  private readonly channels = new Map<string, Heard>();
  private readonly waits: Backoff;
  private readonly watchers = {
    state: new Set<(state: ClientState) => void>(),
    problem: new Set<(it: Problem) => void>(),
  };
  private current: ClientState = 'connecting';
  private connection: Connection | null = null;
  private open_since: number | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  /** Number of the current attempt; results of earlier ones are ignored. */
  private attempt = 0;
  /** Set after a refusal of the whole connection, until a connection is stable. */
  private refused = false;
  /** Set after a channel's refusal: the client reconnects once all pending requests are answered. */
  private renew = false;
  /** The server's error about the whole connection, received before the close. */
  private verdict: Problem | null = null;
  private readonly openSocket: OpenSocket;

  /** @throws Error for an invalid address, or when the runtime has no WebSocket and `open` is absent */
  constructor(private readonly options: ClientOptions) {
    new URL(options.url);
    this.openSocket = options.open ?? ownWebSocket();
    this.timing = { ...TIMING, ...options.timing };
    this.waits = this.backoff();
    void this.connect();
  }

  get state(): ClientState {
    return this.current;
  }

  /** Subscribes to changes of the state, or to problems; returns an unsubscribe function. */
  on(what: 'state', listener: (state: ClientState) => void): () => void;
  on(what: 'problem', listener: (problem: Problem) => void): () => void;
  on(what: 'state' | 'problem', listener: (value: never) => void): () => void {
    const watchers = this.watchers[what] as Set<(value: never) => void>;
    watchers.add(listener);
    return () => void watchers.delete(listener);
  }

  /**
   * Subscribes to a channel, from now on or after message `since`, across reconnections. Several listeners share one
   * subscription, which the first requests.
   */
  subscribe<Name extends ChannelName>(
    channel: Name,
    listener: (message: MessageOf<Name>) => void,
    options: SubscribeOptions = {},
  ): Subscription {
    if (this.current === 'stopped') throw new Error('The client is stopped');
    const heard = this.channels.get(channel) ?? this.hear(channel, options.since ?? null);
    const entry = { deliver: listener as unknown as (message: ServerMessage) => void, options };
    heard.listeners.add(entry);
    if (this.current === 'open' && !this.renew && heard.state === 'off' && heard.timer === null) this.ask(heard);
    return {
      channel,
      get last_id() {
        return heard.last_id;
      },
      close: () => {
        if (heard.listeners.delete(entry) && heard.listeners.size === 0) this.leave(heard);
      },
    };
  }

  /**
   * Sends JSON to all subscribers of the channel. Returns false without a connection, because broadcasts are not
   * queued. A refusal is reported as a problem.
   */
  broadcast(channel: WritableChannel, payload: unknown): boolean {
    if (this.current !== 'open') return false;
    const heard = this.channels.get(channel);
    if (heard) heard.broadcast = true;
    this.connection!.send({ type: 'broadcast', channel, payload: JSON.stringify(payload) });
    return true;
  }

  /** Closes the client for good. */
  close(): void {
    this.stop(null);
  }

  private backoff(): Backoff {
    const { first_ms, most_ms } = this.timing;
    return exponential(first_ms, most_ms, this.options.random ?? Math.random);
  }

  private hear(name: string, last_id: string | null): Heard {
    const heard: Heard = {
      name,
      listeners: new Set(),
      state: 'off',
      last_id,
      on_since: 0,
      refused: false,
      again: this.backoff(),
      timer: null,
      broadcast: false,
      doubted: false,
    };
    this.channels.set(name, heard);
    return heard;
  }

  private leave(heard: Heard): void {
    this.forget(heard);
    if (this.current === 'open' && heard.state !== 'off')
      this.connection!.send({ type: 'unsubscribe', channel: heard.name });
    this.renewWhenAnswered();
  }

  private forget(heard: Heard): void {
    if (heard.timer !== null) clearTimeout(heard.timer);
    if (this.channels.get(heard.name) === heard) this.channels.delete(heard.name);
  }

  private become(state: ClientState): void {
    if (this.current === state) return;
    this.current = state;
    tell(this.watchers.state, (watcher) => watcher(state));
  }

  private problem(problem: Problem): void {
    tell(this.watchers.problem, (watcher) => watcher(problem));
  }

  private async connect(): Promise<void> {
    const attempt = ++this.attempt;
    this.become('connecting');
    let token: string | null;
    try {
      token = await within(this.timing.patience_ms, async () => (await this.options.token?.()) ?? null);
    } catch (error) {
      const code = error instanceof Refused ? 'UNAUTHORIZED' : 'TOKEN_FAILED';
      if (attempt === this.attempt) this.failedAttempt({ code, message: textOf(error) });
      return;
    }
    if (attempt === this.attempt) this.openWith(token);
  }

  private openWith(token: string | null): void {
    const { ping_ms, patience_ms } = this.timing;
    try {
      this.connection = new Connection(this.openSocket(this.options.url, token), {
        ping_ms,
        patience_ms,
        every: this.options.every,
        onMessage: (message) => this.received(message),
        onLost: (loss) => this.lost(loss),
      });
    } catch (error) {
      this.failedAttempt({ code: 'LOST', message: textOf(error) });
    }
  }

  private lost(loss: Loss): void {
    if (this.current === 'stopped') return;
    const { renew, verdict, open_since } = this;
    if (renew || verdict !== null) this.retry(verdict);
    else this.failedAttempt(problemOf(loss, open_since === null));
  }

  private failedAttempt(problem: Problem): void {
    this.problem(problem);
    this.retry(problem);
  }

  /**
   * Handles a lost connection: schedules the next attempt, or stops after a second refusal.
   * @param problem null when the client reconnects because of a channel
   */
  private retry(problem: Problem | null): void {
    // A listener may have closed the client.
    if (this.current === 'stopped') return;
    const stable = this.open_since !== null && now() - this.open_since >= this.timing.stable_ms;
    this.connection = null;
    this.open_since = null;
    this.renew = false;
    this.verdict = null;
    for (const heard of this.channels.values()) {
      if (heard.timer !== null) clearTimeout(heard.timer);
      Object.assign(heard, { state: 'off', timer: null, broadcast: false, doubted: false });
    }
    if (stable) {
      this.waits.reset();
      this.refused = false;
    }
    if (problem !== null && AUTH_CODES.has(problem.code)) {
      if (this.refused) return this.stop(problem);
      this.refused = true;
    }
    this.timer = setTimeout(() => void this.connect(), this.waits.next());
    this.become('waiting');
  }

  /** @param problem null on request */
  private stop(problem: Problem | null): void {
    if (this.current === 'stopped') return;
    this.attempt += 1;
    if (this.timer !== null) clearTimeout(this.timer);
    const left = [...this.channels.values()];
    for (const heard of left) this.forget(heard);
    const { connection } = this;
    this.connection = null;
    this.become('stopped');
    connection?.close({ code: 1000, reason: '' });
    if (problem !== null) for (const heard of left) ended(heard, problem);
  }

  private received(message: ServerMessage): void {
    const heard = message.channel === undefined ? undefined : this.channels.get(message.channel);
    switch (message.type) {
      case 'welcome':
        this.open_since = now();
        this.become('open');
        for (const one of this.channels.values()) if (one.state === 'off') this.ask(one);
        return;
      case 'pong':
      case 'unsubscribed':
        return;
      case 'subscribed':
        return heard && this.accepted(heard, message);
      case 'error':
        return this.failed(message, heard);
      default:
        if (heard) this.deliver(heard, message);
    }
  }

  private deliver(heard: Heard, message: ServerMessage): void {
    // Ignores late messages of an ended subscription.
    if (heard.state !== 'on' && !heard.doubted) return;
    if (message.id !== undefined) heard.last_id = message.id;
    tell(heard.listeners, ({ deliver }) => deliver(message));
  }

  private ask(heard: Heard): void {
    const { name: channel, last_id } = heard;
    heard.state = 'asked';
    this.connection!.send({ type: 'subscribe', channel, ...(last_id === null ? {} : { since: last_id }) });
  }

  private accepted(heard: Heard, { id, recovered }: ServerMessage): void {
    if (heard.state !== 'asked') return;
    heard.state = 'on';
    const { doubted } = heard;
    heard.doubted = false;
    // The subscription was active all the time, so the refusal was about the broadcast.
    if (doubted && recovered !== true) return this.renewWhenAnswered();
    heard.on_since = now();
    if (id !== undefined) heard.last_id = id;
    tell(heard.listeners, ({ options }) => options.onSubscribed?.({ recovered: recovered !== false }));
    this.renewWhenAnswered();
  }

  private failed({ code = '', message = '', channel }: ServerMessage, heard: Heard | undefined): void {
    const problem = { code, message, ...(channel === undefined ? {} : { channel }) } as Problem;
    this.problem(problem);
    if (this.connection === null) return;
    if (channel === undefined) return this.failedWhole(problem);
    if (!heard || heard.state === 'off') return;
    if (heard.state === 'on' && heard.broadcast && (AUTH_CODES.has(code) || code === 'FEATURE_DISABLED')) {
      heard.doubted = true;
      return this.ask(heard);
    }
    if (heard.state === 'on' && now() - heard.on_since >= this.timing.stable_ms) {
      heard.refused = false;
      heard.again.reset();
    }
    this.failedChannel(heard, problem);
  }

  private failedWhole(problem: Problem): void {
    if (problem.code === 'FEATURE_DISABLED') this.stop(problem);
    // The server closes the connection too, but the next attempt need not wait for that.
    else if (AUTH_CODES.has(problem.code)) {
      this.verdict = problem;
      this.connection?.close({ code: TOKEN_CLOSE, reason: problem.code });
    }
  }

  private failedChannel(heard: Heard, problem: Problem): void {
    heard.doubted = false;
    if (problem.code === 'CHANNEL_DROPPED' || problem.code === 'SUBSCRIBE_FAILED') {
      heard.state = 'off';
      heard.timer = setTimeout(() => {
        heard.timer = null;
        this.ask(heard);
      }, heard.again.next());
    } else if (AUTH_CODES.has(problem.code) && !heard.refused) {
      heard.state = 'off';
      heard.refused = true;
      this.renew = true;
    } else if (AUTH_CODES.has(problem.code) || problem.code === 'FEATURE_DISABLED') {
      heard.state = 'off';
      this.forget(heard);
      ended(heard, problem);
      if (this.channels.size === 0) return this.stop(problem);
    }
    this.renewWhenAnswered();
  }

  /**
   * Reconnects with a fresh token once all pending requests are answered, so that one reconnection serves all channels.
   */
  private renewWhenAnswered(): void {
    if (!this.renew || [...this.channels.values()].some(({ state }) => state === 'asked')) return;
    this.connection?.close({ code: 1000, reason: '' });
  }
}

function ended({ listeners }: Heard, problem: Problem): void {
  tell(listeners, ({ options }) => options.onEnded?.(problem));
}

/** Problem of a lost connection. Before the upgrade only the package `ws` reports the server's HTTP status. */
function problemOf({ code, reason }: Loss, before_welcome: boolean): Problem {
  const message = reason === '' ? `the connection was closed with ${code}` : reason;
  if (code === TOKEN_CLOSE) return { code: reason === 'TOKEN_REVOKED' ? reason : 'TOKEN_EXPIRED', message };
  return { code: before_welcome && / 401\b/.test(reason) ? 'UNAUTHORIZED' : 'LOST', message };
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
