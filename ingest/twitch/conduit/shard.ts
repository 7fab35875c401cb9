import { retry } from '../../../lib/async/retry';
import type { EventSubFrame, EventSubSession, Twitch } from '../../../vendors/twitch/port';
import type { ConduitShard } from '../../../vendors/twitch/port';
import {
  type Adapter,
  type AdapterSession,
  type Link,
  LinkLost,
  type LinkedConnection,
} from '../../runtime/connection/adapter';
import { member, textOf } from '../../runtime/webhook/webhook';
import { namedByFrame } from './condition';
import { linkName } from '../../runtime/connection/link-leases';
import { CONDUIT_LOST, type Conduits, type CurrentConduit } from './conduits';
import { REVOKED } from '../frame';
import { normaliseTwitch } from '../normalise';
import { openSession, pauseUntilDrained } from '../session-socket';

export interface ShardDeps {
  conduits: Conduits;
  twitch: Pick<Twitch, 'open'>;
  /** Flags the connection: its owner must connect it again. */
  refused(connection: LinkedConnection, reason: string): Promise<void>;
}

const ON_ITS_WAY = 'What the shard had received and not stored; later notifications were sent to other shards.';
const LIST_RETRY = { first_ms: 250, most_ms: 1_000, within_ms: 3_000 };
/** Twitch reports a revocation once. */
const REVOCATION_RETRY = { first_ms: 250, most_ms: 5_000, within_ms: 60_000, passing: () => true };

export interface ShardSession extends AdapterSession {
  close(): Promise<void>;
}

/**
 * Shards of the conduit, each a link of its own: a new holder assigns its opened socket, and only then does the former
 * holder close its own. Twitch sends a notification to one shard, so that nothing arrives twice.
 */
export function createShardAdapter(deps: ShardDeps): Adapter<ShardSession> {
  const open = (link: Link, follows: boolean) => new Shard(link, deps).begin(follows);
  return {
    vendor: 'twitch',
    connections: deps.conduits.shards,
    connect: (link) => open(link, false),
    resume: (link) => open(link, true),
    normalise: normaliseTwitch,
    stop: (session) => session.close(),
    // No other socket receives the notifications of this one.
    ownerOf: () => 'former',
  };
}

class Shard implements ShardSession {
  readonly ended: Promise<void>;
  private finish!: () => void;
  private fail!: (error: Error) => void;
  private socket: EventSubSession | undefined;
  private readonly over = new AbortController();
  private readonly waiting = new Set<Promise<void>>();
  private reading = true;
  private stopLooking = (): void => undefined;
  /** Number of the keeper's checks when the shard was assigned. */
  private assigned_at = Infinity;
  /** Session that the link has kept; Twitch gives a moved one another id. */
  private kept = '';

  constructor(
    private readonly link: Link,
    private readonly deps: ShardDeps,
  ) {
    this.ended = new Promise((resolve, reject) => ([this.finish, this.fail] = [resolve, reject]));
    this.ended.catch(() => undefined);
  }

  async begin(follows: boolean): Promise<this> {
    const { link, deps } = this;
    const { conduits } = deps;
    const signal = AbortSignal.any([link.signal, this.over.signal]);
    const { last_heard } = link;
    const { current } = conduits;
    const shard = link.connection.channel_id;
    try {
      if (current === null || link.connection.connection_id !== `${current.conduit.id}.${shard}`)
        throw new LinkLost('the conduit is another one now');
      // Before the socket is open, which Twitch closes after 10 s without a shard. The call also gets the app's token.
      const shards = await conduits.deps.twitch.shards(current.app, current.conduit.id);
      const before = follows && !link.handed_over ? shards : null;
      if (!link.handed_over)
        await this.requireOwn(
          current,
          shards?.find(({ id }) => id === shard),
        );
      const socket = (this.socket = await openSession(deps.twitch, link, (frame) => this.onFrame(frame), signal));
      void socket.ended.then(this.finish, (error: Error) => this.lose(new LinkLost(error.message, { cause: error })));
      await this.assign(current, shard, socket.session_id, signal);
      if (this.over.signal.aborted) await this.ended;
      const first = await conduits.store.receives(current.conduit.id);
      this.keep(socket);
      link.status('connected');
      const is_gap = before !== null && (await this.tellGap(current, before, last_heard));
      if (first || is_gap) conduits.announce();
      this.stopLooking = conduits.onLook(() => this.look());
      return this;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.stopLooking();
    this.over.abort();
    this.finish();
    await this.socket?.close();
    await Promise.all(this.waiting);
  }

  private lose(error: Error): void {
    this.over.abort();
    this.fail(error);
  }

  private keep({ session_id }: EventSubSession): void {
    this.kept = session_id;
    this.link.keep({ session_id });
  }

  /**
   * Requires that no other installation receives over the shard: a copy of the database knows the same conduit.
   * @throws LinkLost
   */
  private async requireOwn({ conduit }: CurrentConduit, listed: ConduitShard | undefined): Promise<void> {
    if (!listed?.enabled || listed.session_id === null) return;
    const foreign = await this.deps.conduits.store.foreign([listed.session_id], conduit);
    if (foreign.size > 0) throw new LinkLost('another installation receives over the shard of this conduit');
  }

  private async assign({ app, conduit }: CurrentConduit, shard: string, session_id: string, signal: AbortSignal) {
    const { conduits } = this.deps;
    this.assigned_at = (await conduits.store.conduit(app.client_id))?.checks ?? Infinity;
    if (await conduits.deps.twitch.assign(app, { conduit_id: conduit.id, shard, session_id }, signal)) return;
    conduits.deps.wakeups.notify(CONDUIT_LOST);
    throw new LinkLost('Twitch does not know the conduit any more');
  }

  /**
   * Reports what may be missed since the shard's former socket. While another shard was connected Twitch sent to that
   * one, so that only notifications in transit are missing, which the shard's link reports. True when no shard was
   * connected.
   */
  private async tellGap(
    { conduit }: CurrentConduit,
    before: readonly ConduitShard[],
    last_heard: number | null,
  ): Promise<boolean> {
    const { link, deps } = this;
    const ends = before.flatMap(({ disconnected_at }) => disconnected_at ?? []);
    if (!before.some(({ enabled }) => enabled)) {
      const from = ends.length > 0 ? Math.max(...ends) : last_heard;
      return deps.conduits.store.gap(conduit.id, from, Date.now());
    }
    const own = before.find(({ id }) => id === link.connection.channel_id);
    const to = own?.disconnected_at ?? Date.now();
    link.missed({ from: Math.min(last_heard ?? to, to), to, detail: ON_ITS_WAY });
    return false;
  }

  /**
   * Reassigns the shard when a process that was paused has meanwhile assigned it to its own socket, as soon as that
   * process has closed it: an open one may be another installation's.
   */
  private look(): void {
    const { current } = this.deps.conduits;
    const { conduit } = current ?? {};
    const { socket } = this;
    // Only the second check after the assignment surely began after it.
    if (
      this.over.signal.aborted ||
      conduit === undefined ||
      socket === undefined ||
      conduit.checks < this.assigned_at + 2
    )
      return;
    const shard = this.link.connection.channel_id;
    if (socket.session_id !== this.kept) this.keep(socket);
    if (conduit.sessions[shard] === socket.session_id) return;
    // An open session stays, and the next check lists it again.
    this.assigned_at = conduit.sessions[shard] === undefined ? Infinity : conduit.checks - 1;
    if (this.assigned_at !== Infinity) return;
    this.assignAgain(current!, shard, socket.session_id).catch((error: unknown) => {
      this.lose(new LinkLost('the shard is assigned to another socket', { cause: error }));
    });
  }

  private async assignAgain(current: CurrentConduit, shard: string, session_id: string): Promise<void> {
    const link = linkName('twitch', this.link.connection);
    // A successor's socket is the right one; this one is read for a while longer.
    if (!(await this.deps.conduits.store.isHolder(link, session_id))) return;
    await this.assign(current, shard, session_id, this.over.signal);
  }

  private onFrame(frame: EventSubFrame): void {
    const { value, message_type } = frame;
    if (message_type === 'revocation') return this.track(this.onRevocation(value));
    const channel_id = namedByFrame(value)?.channel_id ?? '';
    const { channels } = this.deps.conduits;
    const known = channels.of(channel_id);
    if (known.length > 0) return this.deliver(frame, known);
    // The channel's connection may be newer than the list of this process.
    this.track(this.listed().then(() => this.deliver(frame, channels.of(channel_id))));
  }

  /** Delivers a frame for each account that has connected the channel. */
  private deliver(frame: EventSubFrame, connections: readonly LinkedConnection[]): void {
    const { text, value, received_at, alive_at, age_ms } = frame;
    const received = { text, value, received_at, alive_at, age_ms };
    for (const connection of connections) void this.link.deliver({ ...received, connection });
    if (connections.length === 0) void this.link.deliver(received);
    if (this.link.full && this.reading) void this.waitForRoom();
  }

  private async waitForRoom(): Promise<void> {
    const { link } = this;
    this.reading = false;
    await pauseUntilDrained(link, () => this.socket);
    this.reading = true;
  }

  private track(work: Promise<void>): void {
    const tracked: Promise<void> = work
      .catch((error: unknown) =>
        this.deps.conduits.deps.log.warn({ err: error }, 'a revocation of Twitch was not kept'),
      )
      .finally(() => this.waiting.delete(tracked));
    this.waiting.add(tracked);
  }

  private async listed(): Promise<void> {
    const { channels, current, deps } = this.deps.conduits;
    if (current === null) return;
    const list = () => channels.refresh(current.app.client_id);
    await retry(list, { ...LIST_RETRY, passing: () => true }).catch((error: unknown) => {
      deps.log.warn({ err: error }, 'the connections of an unknown channel could not be listed');
    });
  }

  private async onRevocation(frame: unknown): Promise<void> {
    const { conduits, refused } = this.deps;
    const kept = <T>(work: () => Promise<T>) => retry(work, { ...REVOCATION_RETRY, signal: this.over.signal });
    const subscription = member(frame, 'payload', 'subscription');
    const id = textOf(member(subscription, 'id'));
    const named = namedByFrame(frame);
    if (named !== null && REVOKED.has(textOf(member(subscription, 'status')) ?? '')) {
      // Another worker may have connected the channel a moment ago.
      if (conduits.channels.of(named.channel_id).length === 0) await this.listed();
      for (const connection of conduits.channels.of(named.channel_id))
        await kept(() => refused(connection, 'authorization_revoked'));
    }
    if (id) await kept(() => conduits.store.ended([id]));
    conduits.announce();
  }
}
