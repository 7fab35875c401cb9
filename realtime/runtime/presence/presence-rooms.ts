import { actorOf } from '../../../access/authentication/caller';
import { readProfiles, type Profile } from '../../../services/identity/profiles';
import type { Logger } from '../../../engines/log/port';
import type { Queryable } from '../../../engines/postgres/port';
import type { Presence, PresenceMember } from '../../../engines/presence/port';
import type { Relay } from '../../../engines/relay/port';
import { Collector } from '../../../lib/async/collector';
import { runEvery } from '../../../lib/async/run-every';
import { shardOf } from '../../../lib/hash/shards';
import { pause, yieldToEventLoop } from '../../../lib/async/signal';
import { ShardMap } from '../delivery/by-shard';
import { eventText } from '../relay/envelopes';
import type { Subscriber } from '../channel/family';
import { textFrame } from '../delivery/frames';
import { PresenceDelta } from './presence-delta';
import { publishToShard, ShardTopics } from '../relay/shard-topics';
import type { Subscription } from '../channel/channel';
import type { Hub } from '../delivery/hub';

export interface PresenceDeps {
  hub: Pick<Hub, 'transient'>;
  store: Presence;
  relay: Relay;
  db: Queryable;
  log: Logger;
  /** True while nodes of the previous release may be connected, which use a single topic. Default: false. */
  older_nodes_connected?: (() => Promise<boolean>) | undefined;
  /**
   * Period of the comparison of rooms with the store, which finds changes that the relay lost or a dead node never
   * sent. Default 10 s.
   */
  compare_ms?: number | undefined;
}

/**
 * Prefix of the relay topics of joins and leaves (see ShardTopics): the connection's id, and for a join a line feed and
 * its info. Alone it is the single topic of older releases: `{"channel", "id", "info"}`, without `info` for a leave.
 */
const PRESENCE_TOPIC = 'presence';

/** Connections that a bootstrap lists at most: some 150 KB, whoever and however many are there. */
const LISTED = 500;
/** Least time between two updates of a room; it grows by a millisecond for each subscriber here. */
const LEAST_BETWEEN_MS = 100;

/** A presence channel with subscribers on this node. */
interface Room {
  /** Connection id to its info, including changes that are sent next. */
  known: Map<string, string>;
  /** Subscribers on this node. */
  here: number;
  /** Nobody has read yet who is there on other nodes. */
  fresh: boolean;
  /** Lets subscribers in: those who come while others are let in form the next group. */
  coming: Collector<Subscriber, void>;
  /** Joins and leaves since the last update of this node's subscribers. */
  news: PresenceDelta;
  /** Pending until all changes are sent. */
  announcing: Promise<void> | undefined;
  /** Everybody here has left. */
  gone: AbortController;
  /** Ids that differed from the store at the last comparison: only those that differ twice are told. */
  differing: Set<string>;
}

/**
 * Members of the channels of the presence family: subscribers get `presence:bootstrap` with the members on all nodes,
 * then `presence:join` and `presence:leave`. Connections of a node that died leave within about half a minute. Source:
 * spec doc3 §4.1.
 */
export class PresenceRooms {
  private readonly rooms = new ShardMap<Room>();
  /** Per session and channel: joins and leaves take effect in their order. */
  private readonly pending = new Map<string, Promise<void>>();
  private readonly topics: ShardTopics;
  private readonly endListening: () => void;
  private readonly endComparing: () => void;

  constructor(private readonly deps: PresenceDeps) {
    const { relay, log } = deps;
    const heard = (channel: string, text: string) => this.onRelayed(channel, text);
    this.topics = new ShardTopics({ relay, log, prefix: PRESENCE_TOPIC, heard });
    this.rooms.onShard = (shard, wanted) => this.topics.listen(shard, wanted);
    this.endListening = relay.subscribe(PRESENCE_TOPIC, (text) => this.onBefore(text));
    const failed = (error: unknown) => deps.log.error({ err: error }, 'presence could not be compared');
    this.endComparing = runEvery(deps.compare_ms ?? 10_000, () => this.compare(), failed);
  }

  /**
   * Somebody subscribed: they are sent who is there, and everybody is told of them. A crowd is let in by groups: each
   * costs one look at the profiles and the store, and one list that all of it are sent.
   * @throws when the profiles cannot be read; then nobody is told of them
   */
  enter(subscriber: Subscriber): Promise<void> {
    const { id, channel } = subscriber;
    let room = this.rooms.get(channel);
    if (!room) this.rooms.set(channel, (room = this.opened(channel)));
    room.here += 1;
    const { coming } = room;
    return this.inOrder(id, channel, () => coming.add(subscriber));
  }

  private opened(channel: string): Room {
    const coming = new Collector<Subscriber, void>({ send: (group) => this.letIn(channel, room, group) });
    const own = { coming, news: new PresenceDelta(), announcing: undefined, gone: new AbortController() };
    const room: Room = { known: new Map(), here: 0, fresh: true, differing: new Set(), ...own };
    return room;
  }

  private async letIn(channel: string, room: Room, group: readonly Subscriber[]): Promise<void[]> {
    const { store, db } = this.deps;
    // Subscribes before the read: a join at another node in between would be missed until the next comparison.
    if (room.fresh) await this.topics.heard(channel);
    const users = group.flatMap(({ caller }) => actorOf(caller).user_id ?? []);
    const profiles = await readProfiles(db, [...new Set(users)]);
    const infos = new Map(group.map((subscriber) => [subscriber.id, infoOf(subscriber, profiles)]));
    await Promise.all([...infos].map(([id, info]) => store.join(channel, { id, info })));
    const members = await store.list(channel);
    if (room.fresh) {
      room.fresh = false;
      for (const { id, info } of members) if (!infos.has(id)) room.known.set(id, info);
    }
    const bootstrap = textFrame(listText(channel, members));
    for (const subscriber of group) subscriber.sendFrame(bootstrap);
    return Promise.all([...infos].map(([id, info]) => this.tell(channel, id, info).catch(this.untold)));
  }

  /** A subscription of whatever family ended, for whatever reason. */
  left({ session: { id }, channel: { name } }: Subscription): void {
    const room = this.rooms.get(name);
    if (!room) return;
    room.here -= 1;
    if (room.here === 0) {
      this.rooms.delete(name);
      room.gone.abort();
    }
    this.inOrder(id, name, async () => {
      await this.deps.store.leave(name, id);
      await this.tell(name, id);
    }).catch(this.untold);
  }

  /** Waits until all leaves are sent. */
  async stop(): Promise<void> {
    this.endComparing();
    await Promise.all(this.pending.values());
    this.endListening();
    for (const room of this.rooms.values()) room.gone.abort();
    this.rooms.clear();
  }

  /** The next comparisons make up for it. */
  private readonly untold = (error: unknown): void => this.deps.log.warn({ err: error }, 'presence could not be told');

  private inOrder(id: string, channel: string, work: () => Promise<void>): Promise<void> {
    const key = `${id} ${channel}`;
    const turn = (this.pending.get(key) ?? Promise.resolve()).then(work);
    const over = turn
      .catch(() => undefined) // the caller reports it
      .then(() => {
        if (this.pending.get(key) === over) this.pending.delete(key);
      });
    this.pending.set(key, over);
    return turn;
  }

  /** Tells all nodes; without `info` of a leave. */
  private async tell(channel: string, id: string, info?: string): Promise<void> {
    const { relay, older_nodes_connected } = this.deps;
    await publishToShard(relay, PRESENCE_TOPIC, channel, info === undefined ? id : `${id}\n${info}`);
    if (await older_nodes_connected?.())
      await relay.publish(PRESENCE_TOPIC, JSON.stringify({ channel, id, info, shard: shardOf(channel) }));
  }

  private onRelayed(channel: string, text: string): void {
    const end = text.indexOf('\n');
    if (end < 0) this.changed(channel, text);
    else this.changed(channel, text.slice(0, end), text.slice(end + 1));
  }

  /** Takes a change from a node of an older release. Newer ones send here too, for such nodes, with their shard. */
  private onBefore(text: string): void {
    const { channel, id, info, shard } = JSON.parse(text) as Record<'channel' | 'id', string> & {
      info?: string;
      shard?: number;
    };
    if (shard === undefined) this.changed(channel, id, info);
  }

  private changed(channel: string, id: string, info?: string): void {
    const room = this.rooms.get(channel);
    if (room) this.change(channel, room, id, info);
  }

  /** Applies a change at once; only its sending waits, and that is bounded. */
  private change(channel: string, room: Room, id: string, info: string | undefined): void {
    const { known, news } = room;
    const left = known.get(id);
    if ((left === undefined) === (info === undefined)) return;
    if (info === undefined) known.delete(id);
    else known.set(id, info);
    news.add(eventText(channel, info === undefined ? 'presence:leave' : 'presence:join', info ?? left!));
    room.announcing ??= this.tellHere(channel, room).catch(this.untold);
  }

  /**
   * Tells this node's subscribers, the first time at once and then in intervals, so that a crowd costs them no message
   * for each of it. Who has come since everybody left was sent a newer list.
   */
  private async tellHere(channel: string, room: Room): Promise<void> {
    const { known, news, gone } = room;
    try {
      await yieldToEventLoop();
      while (!gone.signal.aborted && !news.empty) {
        // The list waits until it was read who is there at other nodes.
        if (!news.many) for (const text of news.take()) this.deps.hub.transient(channel, text);
        else if (!room.fresh) {
          news.take();
          this.deps.hub.transient(channel, listText(channel, membersOf(known)));
        }
        await pause(Math.max(LEAST_BETWEEN_MS, room.here), gone.signal);
      }
    } finally {
      room.announcing = undefined;
    }
  }

  private async compare(): Promise<void> {
    for (const [channel, room] of [...this.rooms]) {
      if (room.fresh) continue;
      try {
        const there = new Map((await this.deps.store.list(channel)).map(({ id, info }) => [id, info]));
        const differing = new Set<string>();
        for (const id of new Set([...there.keys(), ...room.known.keys()])) {
          const info = there.get(id);
          if ((info !== undefined) === room.known.has(id)) continue;
          if (!room.differing.has(id)) differing.add(id);
          else this.change(channel, room, id, info);
        }
        room.differing = differing;
      } catch (error) {
        this.deps.log.warn({ err: error, channel }, 'presence could not be compared; it is tried again');
      }
    }
  }
}

function infoOf({ id, caller }: Subscriber, profiles: ReadonlyMap<string, Profile>): string {
  const { user_id, acts_for } = actorOf(caller);
  const profile = profiles.get(user_id ?? '');
  return JSON.stringify({
    connection_id: id,
    display_name: profile?.display_name ?? null,
    avatar: profile?.avatar_url ?? null,
    user_id,
    account_id: caller.account_id,
    ...(acts_for !== null && { acts_for }),
  });
}

/** In the order in which the store has them. */
const membersOf = (known: ReadonlyMap<string, string>): PresenceMember[] =>
  [...known].map(([id, info]) => ({ id, info })).sort((a, b) => (a.id < b.id ? -1 : 1));

/** List of members: the first to join, up to the bound of a list, and their total. */
function listText(channel: string, members: readonly PresenceMember[]): string {
  const listed = members.slice(0, LISTED).map(({ info }) => info);
  const list = `{"connections":[${listed.join(',')}],"total":${members.length}}`;
  return eventText(channel, 'presence:bootstrap', list);
}
