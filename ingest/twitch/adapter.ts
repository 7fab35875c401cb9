import { pause } from '../../lib/async/signal';
import { Slots } from '../../lib/async/slots';
import type { Gauge, Metrics } from '../../engines/metrics/port';
import type { EventSubFrame, EventSubSession, Twitch, TwitchLogin } from '../../vendors/twitch/port';
import {
  type Adapter,
  type AdapterSession,
  ConnectionRefused,
  type Link,
  type LinkedConnection,
  LinkLost,
  PauseAsked,
} from '../runtime/connection/adapter';
import { member, textOf } from '../runtime/webhook/webhook';
import type { Conduits } from './conduit/conduits';
import { namedByFrame } from './conduit/condition';
import { ConduitPart } from './conduit/part';
import { EarlyFrames } from './early-frames';
import { isObject, type Members, REVOKED } from './frame';
import { ownerOf } from './handover/ownership';
import { type Reading, readingsBefore } from './handover/readings';
import { SETTLED_MS, SharedIds } from './handover/shared-ids';
import { HeldDeletes } from './held-deletes';
import { loginOf, validateHourly } from './login';
import { type Known, knownAfter, NOTHING_KNOWN } from './looks/known';
import { lookBack, reportGap, type TimeGap } from './look-back';
import { normaliseTwitch } from './normalise';
import { openSession, pauseUntilDrained } from './session-socket';
import { readState, type SessionState } from './state';
import { SUBSCRIBED, subscribeAll, type Subscribed, type Subscription, TokenUnusable } from './subscriptions';

export interface TwitchAdapterDeps {
  twitch: Twitch;
  /** App of tokens whose app is unknown. */
  client_id: string | undefined;
  /** Absent when every channel is received over a socket of its own. */
  conduits?: Conduits;
  /** State of a channel whose events other processes received, over a conduit. Default: unknown. */
  lastKnown?(connection: LinkedConnection): Promise<Known>;
  metrics: Metrics;
  /** Concurrent subscription calls of a channel. Default 6. */
  subscription_calls?: number;
}

/**
 * Maximum concurrent openings. Each makes six calls at a time, and together no more than the connections that the
 * process may have to one host.
 */
const OPENING = 20;
/** Maximum concurrent catch-ups, which must not delay openings. */
const LOOKING = 8;
/** Pause after the owner's consent allowed no subscription at all. */
const NOTHING_ALLOWED_MS = 10 * 60_000;
/** Maximum sessions of one holding that failed while they were being opened. */
const MAX_FAILED = 4;
/** A type that reports the present state: where the conduit receives it, only a gap requires a catch-up. */
const GOES_ON = 'stream.online';

export interface TwitchSession extends AdapterSession {
  close(): Promise<void>;
}

/**
 * Twitch by EventSub: each connected channel over the conduit as far as its owner's consent allows, and the rest over a
 * socket of its own. Spec doc3 §6.4.
 */
export function createTwitchAdapter(deps: TwitchAdapterDeps): Adapter<TwitchSession> {
  const opening = new Slots(OPENING);
  const looking = new Slots(LOOKING);
  const cost = deps.metrics.gauge(
    'lumio_twitch_subscription_cost',
    'Points of subscriptions of the app, as Twitch last said',
    ['which'],
  );
  const shared = new SharedIds();
  const failed = new WeakMap<Link, readonly Reading[]>();
  const open = (link: Link, before: SessionState | null) =>
    new Opened(link, deps, cost, looking, before, { shared, failed }).begin(before !== null);
  return {
    vendor: 'twitch',
    opening,
    connect: (link) => open(link, null),
    resume: (link, state) => open(link, readState(state)),
    normalise: normaliseTwitch,
    stop: (session) => session.close(),
    ownerOf: (received, state, holding) => ownerOf(received, state, holding, shared),
  };
}

/** A session that is open, or being opened. */
class Opened implements TwitchSession {
  readonly ended: Promise<void>;
  private socket: EventSubSession | undefined;
  private readonly over = new AbortController();
  private fail!: (error: Error) => void;
  private finish!: () => void;
  private readonly deletes: HeldDeletes;
  private readonly early: EarlyFrames;
  private refused: Subscribed['refused'] = [];
  private since: Record<string, string> = {};
  /** Of earlier sessions, those that could not be opened among them. */
  private readonly readings: readonly Reading[];
  /** Starts of the subscriptions while the socket is being opened. */
  private beginning: Record<string, string> = {};
  /** Time of the last delivered notification, as Twitch wrote it. */
  private last_sent: string | undefined;
  private known: Known | null;
  private user_id: string;
  private reading = true;
  private readonly conduit: ConduitPart;
  /** Names of the subscriptions that the socket was opened for. */
  private asked: ReadonlySet<string> = new Set();
  private is_open = false;
  /** Close of a socket that is no longer needed; it is read until Twitch closes it. */
  private left: Promise<void> = Promise.resolve();
  /** Frames that wait until it is known whether the conduit receives them. */
  private waiting: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly link: Link,
    private readonly deps: TwitchAdapterDeps,
    private readonly cost: Gauge,
    private readonly looking: Slots,
    private readonly before: SessionState | null,
    private readonly handover: { shared: SharedIds; failed: WeakMap<Link, readonly Reading[]> },
  ) {
    this.readings = [...readingsBefore(before), ...(handover.failed.get(link) ?? [])];
    this.known = before?.known ?? null;
    this.deletes = new HeldDeletes((frame) => this.deliver(frame));
    this.early = new EarlyFrames(link, (frame) => this.deliver(frame));
    this.user_id = link.connection.channel_id;
    const parts = {
      onChange: () => this.onConduitChange(),
      onGap: (gap: TimeGap) => this.look(gap),
      onLost: (alive_at: number | null) => this.onConduitLost(alive_at),
      onAlive: (at: number) => this.socket === undefined && link.heard(at),
    };
    this.conduit = new ConduitPart(deps.conduits, link.connection, parts);
    this.ended = new Promise((resolve, reject) => ([this.finish, this.fail] = [resolve, reject]));
    this.ended.catch(() => undefined);
  }

  /** @param follows whether an earlier session existed, so that events may be missed */
  async begin(follows: boolean): Promise<this> {
    const { link, deps } = this;
    const signal = AbortSignal.any([link.signal, this.over.signal]);
    const last_heard = link.last_heard;
    const lost_at = deps.conduits?.takeLost(link.connection) ?? null;
    try {
      const login = await this.login();
      await this.conduit.begin(!follows && lost_at === null, signal);
      const wanted = this.conduit.onSocket();
      if (wanted.length > 0) await this.openSocket(wanted, signal);
      this.is_open = true;
      this.handover.failed.delete(link);
      // From here on another process can see that this one receives.
      this.keep();
      this.early.release();
      if (this.over.signal.aborted) await this.ended;
      this.show();
      void validateHourly(link, deps.twitch, this.over.signal).then((refused) => refused && this.lose(refused));
      const is_missed = follows && !link.handed_over && wanted.length > 0;
      const from = Math.min(last_heard ?? Infinity, lost_at ?? Infinity);
      const gap = is_missed || lost_at !== null ? { from: from === Infinity ? null : from, to: Date.now() } : null;
      // The session is open already: a new holder must find that this process reads on.
      this.look(gap ?? this.conduit.gapAfter(this.before?.gaps), login);
      // A conduit that began at the boundary of two holders would receive their events under further ids.
      if (follows && wanted.length > 0) void pause(SETTLED_MS, signal).then(() => this.conduit.watch());
      else this.conduit.watch();
      return this;
    } catch (error) {
      // A former holder that ends before the next session is open must not leave to this one what is dropped here.
      if (this.early.discard()) link.keepBeginning(this.stateSince({}));
      await this.close();
      if (!this.is_open) this.noteFailed();
      if (this.revoked) throw this.revoked;
      if (error instanceof TokenUnusable) throw new ConnectionRefused('token_refused');
      throw error;
    }
  }

  private async openSocket(wanted: readonly Subscription[], signal: AbortSignal): Promise<void> {
    const { link, deps } = this;
    this.asked = new Set(wanted.map(({ name }) => name));
    const socket = (this.socket = await openSession(deps.twitch, link, (frame) => this.onFrame(frame), signal));
    void socket.ended.then(
      () => this.socket === socket && this.finish(),
      (error: Error) => this.socket === socket && this.lose(new LinkLost(error.message, { cause: error })),
    );
    const subscribed = await this.subscribe(socket, wanted, signal);
    if (subscribed.cost) {
      this.cost.set(subscribed.cost.total, { which: 'used' });
      this.cost.set(subscribed.cost.most, { which: 'allowed' });
    }
  }

  private onConduitChange(): void {
    if (!this.is_open || this.over.signal.aborted) return;
    this.keep();
    this.show();
    const { socket } = this;
    const wanted = this.conduit.onSocket();
    if (wanted.length === 0 && socket !== undefined) {
      this.socket = undefined;
      this.left = socket.close();
    } else if (!this.conduit.isMaking && wanted.some(({ name }) => !this.asked.has(name))) {
      // Opened again, with a socket for these as well.
      this.finish();
    }
  }

  private onConduitLost(alive_at: number | null): void {
    if (this.over.signal.aborted) return;
    this.deps.conduits?.noteLost(this.link.connection, alive_at);
    this.lose(new LinkLost('Twitch has ended the conduit that the channel was received over'));
  }

  async close(): Promise<void> {
    this.over.abort();
    this.finish();
    this.conduit.close();
    await Promise.all([this.socket?.close(), this.left]);
    await this.waiting;
    this.deletes.releaseAll();
  }

  private revoked: ConnectionRefused | undefined;

  private lose(error: Error): void {
    this.over.abort();
    this.fail(error);
  }

  private async login(refused?: string): Promise<TwitchLogin> {
    const { login, user_id } = await loginOf(this.link, this.deps.twitch, this.deps.client_id, refused);
    this.user_id = user_id ?? this.user_id;
    return login;
  }

  private async subscribe(
    socket: EventSubSession,
    wanted: readonly Subscription[],
    signal: AbortSignal,
  ): Promise<Subscribed> {
    const { channel_id } = this.link.connection;
    const subscribed = await subscribeAll({
      twitch: this.deps.twitch,
      wanted,
      session_id: socket.session_id,
      now: () => socket.now(),
      reader: { channel_id, user_id: this.user_id },
      login: (refused) => this.login(refused),
      onSince: (since) => {
        this.beginning = since;
        this.link.keepBeginning(this.stateSince(since));
      },
      signal,
      at_once: this.deps.subscription_calls,
    });
    this.since = subscribed.since;
    this.refused = subscribed.refused;
    if (Object.keys({ ...subscribed.since, ...this.conduit.since() }).length === 0) {
      this.show();
      const [first] = subscribed.refused;
      throw new PauseAsked(`Twitch refuses every subscription: ${first?.message ?? ''}`, NOTHING_ALLOWED_MS);
    }
    return subscribed;
  }

  private show(): void {
    const refused = [...this.refused, ...this.conduit.refused()];
    if (refused.length === 0) return this.link.status('connected');
    const named = [...new Set(refused.map(({ type, message }) => `${type} (${message})`))].join(', ');
    this.link.status('degraded', `Twitch does not let us receive: ${named}.`);
  }

  private look(gap: TimeGap | null, login?: TwitchLogin): void {
    if (gap === null && this.isCovered && this.before !== null) return;
    void this.looking
      .use(async () => this.lookBack(gap, login ?? (await this.login())))
      .catch((cause: unknown) => this.lose(new LinkLost('What went on could not be looked at', { cause })));
  }

  private async lookBack(gap: TimeGap | null, login: TwitchLogin): Promise<void> {
    const { link, deps } = this;
    const { signal } = this.over;
    const { isCovered: is_covered } = this;
    const own = this.before?.known ?? null;
    // Of a channel on the conduit other processes received the earlier events.
    const before = is_covered ? ((await deps.lastKnown?.(link.connection)) ?? null) : own;
    const at_first = is_covered ? this.known : own;
    const looked = await lookBack({ twitch: deps.twitch, link, login, before, present: () => this.known, signal });
    if (looked !== null) {
      // Events received meanwhile are newer than the fetched state.
      if (this.known === at_first) this.known = looked.known;
      this.keep();
    }
    if (gap !== null) reportGap(link, gap, looked);
  }

  private get isCovered(): boolean {
    return this.conduit.since()[GOES_ON] !== undefined;
  }

  private keep(): void {
    if (this.is_open) this.link.keep(this.stateSince(this.since));
  }

  private stateSince(socket_since: SessionState['since']): SessionState {
    const { session_id = '' } = this.socket ?? {};
    const since = { ...this.conduit.since(), ...socket_since };
    const gaps = this.conduit.gap?.number;
    const known = this.known ?? NOTHING_KNOWN;
    const { holding } = this.link;
    return { session_id, since, known, holding, readings: [...this.readings], ...(gaps !== undefined && { gaps }) };
  }

  /** Keeps what a session received that was never completely open: a former holder leaves that to this one. */
  private noteFailed(): void {
    const { link, last_sent: until, beginning: since, handover } = this;
    if (until === undefined) return;
    const reading = { holding: link.holding, since, until };
    handover.failed.set(link, [...(handover.failed.get(link) ?? []), reading].slice(-MAX_FAILED));
  }

  private onFrame(frame: EventSubFrame): void {
    const { value, message_type } = frame;
    if (message_type === 'revocation') return this.onRevocation(value);
    const type = member(value, 'metadata', 'subscription_type');
    const event = member(value, 'payload', 'event');
    if (typeof type === 'string' && isObject(event)) {
      const undecided = this.conduit.undecided(value);
      if (undecided !== undefined) {
        this.waiting = Promise.all([this.waiting, undecided.then(() => this.onFrame(frame))]);
        return;
      }
      if (this.conduit.receives(value)) return;
      const has_moderate = this.since['channel.moderate'] !== undefined;
      if (this.deletes.hold(type, event, frame, has_moderate)) return;
      this.learn(type, event, member(value, 'metadata', 'message_timestamp'));
    }
    this.deliver(frame);
  }

  private deliver(frame: EventSubFrame): void {
    if (this.early.hold(frame)) return;
    const { text, value, received_at, alive_at, age_ms } = frame;
    if (!this.is_open) this.last_sent = textOf(member(value, 'metadata', 'message_timestamp')) ?? this.last_sent;
    const shared_id = this.handover.shared.ofSuccessor(frame);
    void this.link.deliver({ text, value, received_at, alive_at, age_ms, shared_id });
    if (this.link.full && this.reading) void this.waitForRoom();
  }

  private learn(type: string, event: Members, sent_at: unknown): void {
    const known = knownAfter(this.known ?? NOTHING_KNOWN, type, event, sent_at);
    if (known === this.known || (this.known === null && known === NOTHING_KNOWN)) return;
    this.known = known;
    // Not before the subscription: another process must not count this one as receiving.
    if (Object.keys(this.since).length > 0) this.keep();
  }

  private async waitForRoom(): Promise<void> {
    this.reading = false;
    await pauseUntilDrained(this.link, () => this.socket);
    this.reading = true;
  }

  private onRevocation(value: unknown): void {
    const status = textOf(member(value, 'payload', 'subscription', 'status')) ?? '';
    const type = textOf(member(value, 'payload', 'subscription', 'type')) ?? '';
    if (REVOKED.has(status)) {
      this.revoked ??= new ConnectionRefused(status);
      return this.lose(this.revoked);
    }
    // Ignores types without a subscription of ours.
    if (!SUBSCRIBED.has(type)) return;
    this.refused = [...this.refused.filter((one) => one.type !== type), { type, message: status.slice(0, 100) }];
    delete this.since[type];
    delete this.since[namedByFrame(value)?.name ?? type];
    this.show();
  }
}
