import type { Json } from '../../kernel/json';
import { Slots } from '../../kernel/slots';
import { pause } from '../../kernel/signal';
import type { Counter, Gauge, Metrics } from '../../engines/metrics/port';
import type { EventSubFrame, EventSubSession, Twitch, TwitchLogin } from '../../vendors/twitch/port';
import {
  type Adapter,
  type AdapterSession,
  ConnectionRefused,
  type Link,
  LinkLost,
  PauseAsked,
} from '../runtime/adapter';
import type { Received } from '../runtime/adapter';
import { readJson } from '../runtime/text';
import { member, textOf } from '../runtime/webhook';
import { isObject, type Members } from './frame';
import { deletedMessage, HeldDeletes } from './held-deletes';
import { normaliseTwitch } from './normalise';
import {
  type Caught,
  catchUp,
  earlierThan,
  isBeforeFollowers,
  type Known,
  knownAfter,
  NOTHING_KNOWN,
  readState,
  type SessionState,
  stateId,
} from './state';
import { SUBSCRIBED, subscribeAll, type Subscribed, TokenUnusable } from './subscriptions';
import { Twins } from './twins';

export interface TwitchAdapterDeps {
  twitch: Twitch;
  /** The app of tokens that do not say whose they are. */
  client_id: string | undefined;
  metrics: Metrics;
}

/** Sessions that are opened at a time: each must be subscribed within its window. And those that look back. */
const OPENING = 16;
/** Twitch asks for it once an hour. */
const VALIDATE_MS = 60 * 60_000;
/** Nothing may be read with what the owner has allowed: looked at again now and then. */
const NOTHING_ALLOWED_MS = 10 * 60_000;
/** What tells nobody afterwards, in the words of the status. */
const LOST = 'follows, cheers, subscriptions, raids, rewards, ad breaks, chat and moderation';
/** Ends of authorisation as a whole; other ends are of one subscription. */
const REVOKED: ReadonlySet<string> = new Set(['authorization_revoked', 'user_removed']);

export interface TwitchSession extends AdapterSession {
  close(): Promise<void>;
}

/** Twitch by EventSub over WebSocket: one socket for each connected channel. Spec doc3 §6.4. */
export function createTwitchAdapter(deps: TwitchAdapterDeps): Adapter<TwitchSession> {
  const opening = new Slots(OPENING);
  const looking = new Slots(OPENING);
  const cost = deps.metrics.gauge(
    'lumio_twitch_subscription_cost',
    'Points of subscriptions of the app, as Twitch last said',
    ['which'],
  );
  const twins = deps.metrics.counter(
    'lumio_twitch_twins_total',
    'Acts of moderators that were told twice, and kept once',
  );
  const open = (link: Link, before: SessionState | null) =>
    new Opened(link, deps, { cost, twins }, looking, before).begin(before !== null);
  return {
    vendor: 'twitch',
    opening,
    connect: (link) => open(link, null),
    resume: (link, state) => open(link, readState(state)),
    normalise: normaliseTwitch,
    stop: (session) => session.close(),
    beforeSuccessor,
  };
}

/** Whether a frame tells of what was before whoever followed was subscribed to its type. */
function beforeSuccessor({ text, value }: Received, state: Json, own: Json): boolean {
  const frame = value === undefined ? readJson(text) : { ok: true as const, value };
  const metadata = frame.ok ? member(frame.value, 'metadata') : undefined;
  const type = textOf(member(metadata, 'subscription_type')) ?? '';
  return isBeforeFollowers(state, own, type, member(metadata, 'message_timestamp'));
}

/** A session that is open, or about to be. */
class Opened implements TwitchSession {
  readonly ended: Promise<void>;
  private socket: EventSubSession | undefined;
  private readonly over = new AbortController();
  private fail!: (error: Error) => void;
  private finish!: () => void;
  private readonly twins = new Twins();
  private readonly deletes = new HeldDeletes((frame) => this.deliver(frame));
  private refused: Subscribed['refused'] = [];
  private since: Record<string, string> = {};
  private known: Known | null;
  private user_id: string;
  private reading = true;

  constructor(
    private readonly link: Link,
    private readonly deps: TwitchAdapterDeps,
    private readonly counts: { cost: Gauge; twins: Counter },
    private readonly looking: Slots,
    private readonly before: SessionState | null,
  ) {
    this.known = before?.known ?? null;
    this.user_id = link.connection.channel_id;
    this.ended = new Promise((resolve, reject) => ([this.finish, this.fail] = [resolve, reject]));
    this.ended.catch(() => undefined);
  }

  /** @param follows whether an earlier session was there, so that something may have been missed */
  async begin(follows: boolean): Promise<this> {
    const { link, deps } = this;
    const signal = AbortSignal.any([link.signal, this.over.signal]);
    const last_heard = link.last_heard;
    try {
      const login = await this.login();
      const listener = {
        onFrame: (frame: EventSubFrame) => this.onFrame(frame),
        onAlive: (at: number) => link.heard(at),
        full: () => link.full,
      };
      const socket = (this.socket = await deps.twitch.open(listener, signal).catch((cause: unknown) => {
        throw new LinkLost(`Twitch did not open a session: ${(cause as Error).message}`, { cause });
      }));
      void socket.ended.then(
        () => this.finish(),
        (error: Error) => this.lose(new LinkLost(error.message, { cause: error })),
      );
      const subscribed = await this.subscribe(socket, signal);
      // From here on another process knows that this one receives.
      this.keep();
      if (this.over.signal.aborted) await this.ended;
      this.show();
      if (subscribed.cost) {
        this.counts.cost.set(subscribed.cost.total, { which: 'used' });
        this.counts.cost.set(subscribed.cost.most, { which: 'allowed' });
      }
      void this.validate();
      const gap = follows && !link.handed_over ? { from: last_heard, to: Date.now() } : null;
      // The session is open already: whoever is to have it now must find that this process reads on.
      void this.looking
        .use(() => this.lookBack(gap, login))
        .catch((cause: unknown) => this.lose(new LinkLost('What went on could not be looked at', { cause })));
      return this;
    } catch (error) {
      await this.close();
      if (this.revoked) throw this.revoked;
      if (error instanceof TokenUnusable) throw new ConnectionRefused('token_refused');
      throw error;
    }
  }

  async close(): Promise<void> {
    this.over.abort();
    this.finish();
    await this.socket?.close();
    this.deletes.releaseAll();
  }

  private revoked: ConnectionRefused | undefined;

  private lose(error: Error): void {
    this.over.abort();
    this.fail(error);
  }

  private async login(refused?: string): Promise<TwitchLogin> {
    const { link, deps } = this;
    const token = await link.token(refused);
    const client_id = link.connection.client_id ?? deps.client_id;
    if (client_id !== undefined) return { token, client_id };
    const validated = await deps.twitch.validate(token);
    if (validated === null) throw new ConnectionRefused('token_refused');
    this.user_id = validated.user_id;
    return { token, client_id: validated.client_id };
  }

  private async subscribe(socket: EventSubSession, signal: AbortSignal): Promise<Subscribed> {
    const { channel_id } = this.link.connection;
    const subscribed = await subscribeAll({
      twitch: this.deps.twitch,
      session_id: socket.session_id,
      now: () => socket.now(),
      reader: { channel_id, user_id: this.user_id },
      login: (refused) => this.login(refused),
      signal,
    });
    this.since = subscribed.since;
    this.refused = subscribed.refused;
    if (Object.keys(subscribed.since).length === 0) {
      this.show();
      const [first] = subscribed.refused;
      throw new PauseAsked(`Twitch refuses every subscription: ${first?.message ?? ''}`, NOTHING_ALLOWED_MS);
    }
    return subscribed;
  }

  private show(): void {
    if (this.refused.length === 0) return this.link.status('connected');
    const named = [...new Set(this.refused.map(({ type, message }) => `${type} (${message})`))].join(', ');
    this.link.status('degraded', `Twitch does not let us receive: ${named}.`);
  }

  /** Twitch sends nothing again: what can be asked is asked, and the rest is said to be missing. */
  private async lookBack(gap: { from: number | null; to: number } | null, login: TwitchLogin): Promise<void> {
    const { link, deps } = this;
    const { signal } = this.over;
    const channel_id = link.connection.channel_id;
    const before = this.before?.known ?? null;
    const found = signal.aborted ? null : await catchUp({ twitch: deps.twitch, login, channel_id, before });
    if (found !== null && !signal.aborted) {
      for (const caught of found.events) void link.deliver(synthetic(caught, link));
      // What was heard meanwhile knows better.
      if (this.known === before) this.known = found.known;
      this.keep();
    }
    if (gap === null) return;
    const { unasked: away = [] } = found ?? {};
    const unasked = away.length === 0 ? '' : ` Could not be asked: ${away.join(', ')}.`;
    link.missed({ ...gap, detail: `What nobody tells afterwards: ${LOST}.${unasked}` });
  }

  private keep(): void {
    const { socket, since, before } = this;
    if (socket === undefined) return;
    const { session_id } = socket;
    const state = { session_id, since, known: this.known ?? NOTHING_KNOWN, earlier: earlierThan(before) };
    this.link.keep(state satisfies SessionState);
  }

  private onFrame(frame: EventSubFrame): void {
    const { value, message_type } = frame;
    if (message_type === 'revocation') return this.onRevocation(value);
    const type = member(value, 'metadata', 'subscription_type');
    const event = member(value, 'payload', 'event');
    if (typeof type === 'string' && isObject(event)) {
      const deleted = deletedMessage(type, event);
      const has_moderator = type === 'channel.moderate';
      if (this.twins.isSecond(type, event, frame.received_at)) {
        this.counts.twins.inc();
        // Only channel.moderate names the moderator of a deletion.
        if (deleted === null || !has_moderator || !this.deletes.discard(deleted)) return;
      } else if (deleted !== null && !has_moderator && this.since['channel.moderate'] !== undefined) {
        return this.deletes.hold(deleted, frame);
      }
      this.learn(type, event);
    }
    this.deliver(frame);
  }

  private deliver({ text, value, received_at, alive_at, age_ms }: EventSubFrame): void {
    void this.link.deliver({ text, value, received_at, alive_at, age_ms });
    if (this.link.full && this.reading) void this.waitForRoom();
  }

  private learn(type: string, event: Members): void {
    const known = knownAfter(this.known ?? NOTHING_KNOWN, type, event);
    if (known === this.known || (this.known === null && known === NOTHING_KNOWN)) return;
    this.known = known;
    // Before it is subscribed the successor of another process must not think so.
    if (Object.keys(this.since).length > 0) this.keep();
  }

  private async waitForRoom(): Promise<void> {
    this.reading = false;
    this.socket?.pause();
    await this.link.drained();
    this.reading = true;
    this.socket?.resume();
  }

  private onRevocation(value: unknown): void {
    const status = textOf(member(value, 'payload', 'subscription', 'status')) ?? '';
    const type = textOf(member(value, 'payload', 'subscription', 'type')) ?? '';
    if (REVOKED.has(status)) {
      this.revoked ??= new ConnectionRefused(status);
      return this.lose(this.revoked);
    }
    // Of what was never asked for nothing is lost.
    if (!SUBSCRIBED.has(type)) return;
    this.refused = [...this.refused.filter((one) => one.type !== type), { type, message: status.slice(0, 100) }];
    delete this.since[type];
    this.show();
  }

  /** Twitch wants to be asked once an hour whether the owner still agrees. */
  private async validate(): Promise<void> {
    const { link, deps } = this;
    const { signal } = this.over;
    for (;;) {
      await pause(VALIDATE_MS * (0.9 + Math.random() / 10), signal);
      if (signal.aborted) return;
      try {
        const token = await link.token();
        if ((await deps.twitch.validate(token)) === null) await link.token(token);
      } catch (error) {
        if (!(error instanceof ConnectionRefused)) continue;
        return this.lose(error);
      }
    }
  }
}

/** A notification that Twitch would have sent: the same id whoever makes it, so that it counts once. */
function synthetic({ type, id, event }: Caught, { connection }: Link): Received {
  const value = {
    metadata: {
      message_id: stateId(type, id),
      message_type: 'notification',
      message_timestamp: new Date().toISOString(),
      subscription_type: type,
    },
    payload: { subscription: { type }, event: { broadcaster_user_id: connection.channel_id, ...event } },
  };
  return { text: JSON.stringify(value), value, received_at: Date.now(), age_ms: 0 };
}
