import type { StoredMessage } from '../relay/envelopes';
import { eventText, storedMessageText } from '../relay/envelopes';
import { textFrame } from '../delivery/frames';
import type { ChannelServices, Families, Subscriber } from '../channel/family';
import type { ChannelAuthorizers } from '../channel/gates';
import { type Channel, Subscription } from '../channel/channel';
import type { Forwarding } from '../forward/forwarding';
import type { Hub } from '../delivery/hub';
import { type HistoryEntry, historyEntry } from '../channel/history';
import { parseMessageId } from '../channel/ids';
import { PageReplays } from '../forward/page-replays';
import { LIMITS } from '../channel/limits';
import type { RealtimeMetrics } from './metrics';
import { inTime, type Outbox, type PageBounds } from '../delivery/outbox';
import { subscribedText, unsubscribedText } from '../channel/protocol';
import type { Session } from './session';
import type { SocketFailures } from './socket-failures';

const PAGE: PageBounds = { messages: 128, bytes: 256 * 1024 };
/** How long a client that was on a node ahead of this one waits until this one has come as far. */
const CATCH_UP_MS = 10_000;

export interface SubscriptionDeps {
  hub: Hub;
  gates: ChannelAuthorizers;
  outbox: Outbox;
  /** Settles when the tail has its starting point: a head read before it could fall into the gap between. */
  tail: { readonly ready: Promise<void> };
  /** Settles when unstored messages of other nodes for the channel are received here; bounded. */
  heard(channel: string): Promise<unknown>;
  resume_window_ms: number;
  families: Families;
  services: ChannelServices;
  forwarding: Pick<Forwarding, 'open' | 'missedBy'>;
  failed: SocketFailures;
  metrics: RealtimeMetrics;
}

/**
 * Subscribing, resuming and leaving. A replay never reads past what this node's tail has delivered, so it joins the
 * live stream without a seam.
 */
export class Subscriptions {
  private readonly pages: PageReplays;

  constructor(private readonly deps: SubscriptionDeps) {
    this.pages = new PageReplays(deps);
  }

  /** Answers `subscribed` or an error; with `since`, what was missed follows. */
  async subscribe(session: Session, name: string, since: string | null): Promise<void> {
    const existing = session.subscriptions.find((subscription) => subscription.channel.name === name);
    if (existing) {
      const { fan_out } = this.deps.hub;
      const place = existing.channel.idAt(fan_out.place(existing), fan_out.places(existing));
      session.send(subscribedText(name, place, since === null ? null : false));
      return;
    }
    try {
      const verdict = await this.deps.gates.mayRead(session.caller, name);
      if (!session.open) return;
      if (verdict !== 'ok') return session.error(verdict, name);
      if (session.subscriptions.length >= LIMITS.subscriptions) return session.error('SUBSCRIBE_FAILED', name);
      await this.attach(session, name, since);
    } catch (error) {
      this.deps.failed({ err: error, channel: name, session: session.id }, 'a subscription could not be registered');
      session.error('SUBSCRIBE_FAILED', name);
    }
  }

  unsubscribe(session: Session, name: string): void {
    const subscription = session.subscriptions.find((candidate) => candidate.channel.name === name);
    if (subscription) this.deps.hub.leave(subscription);
    session.send(unsubscribedText(name));
  }

  /** Takes a live subscription whose queue was full on to its history; called by the hub. */
  scheduleReplay(subscription: Subscription): void {
    void this.replay(subscription);
  }

  /** Opens a channel: its head is read and its topic subscribed. Concurrent callers share one read. */
  async open(name: string): Promise<Channel> {
    const { hub, outbox, tail, heard } = this.deps;
    const channel = hub.channel(name);
    if (channel.seq >= 0) return channel;
    const head = () => inTime(tail.ready).then(() => outbox.head(name));
    channel.opening ??= Promise.all([head(), heard(name)]).then(
      ([seq]) => {
        channel.opening = null;
        hub.opened(channel, seq);
      },
      (error: unknown) => {
        channel.opening = null;
        hub.forget(channel, 'SUBSCRIBE_FAILED');
        throw error;
      },
    );
    await channel.opening;
    // A hole found while opening has already forgotten this channel object: begin again with a new one.
    return channel.gone ? this.open(name) : channel;
  }

  private async attach(session: Session, name: string, since: string | null): Promise<void> {
    const { hub, metrics } = this.deps;
    const channel = await this.open(name);
    // Before the first messages are read, so that nothing is missed in between.
    await this.deps.forwarding.open(channel);
    if (channel.gone) return this.attach(session, name, since);
    if (channel.forwarded !== null) return this.attachToPage(session, channel, since);
    let from = channel.seq;
    let recovered: boolean | null = null;
    let first: readonly HistoryEntry[] | null = null;
    if (since !== null) {
      const asked = parseMessageId(channel.epoch, since);
      first = asked === null ? null : await this.recoverable(channel, asked);
      recovered = first !== null;
      metrics.resumed.inc(1, { recovered: String(recovered) });
      if (recovered) from = asked!;
    }
    // A right that went meanwhile found no subscription that it could end.
    const verdict = await this.deps.gates.mayRead(session.caller, name);
    if (!session.open) return;
    if (verdict !== 'ok') return session.error(verdict, name);
    if (channel.gone) return this.attach(session, name, since);
    if (!recovered) from = channel.seq;
    const subscription = new Subscription(session, channel, from);
    session.subscribed(subscription);
    // Where the client is now, not where the replay will take it: what it stores must not skip what was not sent.
    session.send(subscribedText(name, channel.idAt(from), recovered));
    if (from === channel.seq) {
      hub.join(subscription);
    } else {
      channel.replay(subscription);
      void this.replay(subscription, first ?? []);
    }
    void this.bootstrap(subscription);
  }

  /** Like {@link attach}, on a channel with forwarded ones: its beginning comes first, then what was missed. */
  private async attachToPage(session: Session, channel: Channel, since: string | null): Promise<void> {
    const { name } = channel;
    const start = await this.pages.start(channel, since);
    const verdict = await this.deps.gates.mayRead(session.caller, name);
    if (!session.open) return;
    if (verdict !== 'ok') return session.error(verdict, name);
    if (channel.gone || start === null) return this.attach(session, name, since);
    const [seq, ...places] = start.places;
    const subscription = new Subscription(session, channel, seq!, places);
    session.subscribed(subscription);
    session.send(subscribedText(name, channel.idAt(seq!, places), start.recovered));
    subscription.begun = false;
    channel.replay(subscription);
    void this.bootstrap(subscription).then(() => {
      subscription.begun = true;
      return this.pages.replay(subscription, start);
    });
  }

  /** Lets the family begin with the new subscriber; one that cannot be given its beginning has to come again. */
  private async bootstrap(subscription: Subscription): Promise<void> {
    const { session } = subscription;
    const { name } = subscription.channel;
    const { families, services, failed, hub } = this.deps;
    const sendFrame = (bytes: Buffer) => {
      if (subscription.state !== 'ended') session.sendFrame(bytes);
    };
    const named = families.of(name);
    const subscriber: Subscriber = {
      id: session.id,
      channel: name,
      channel_id: named?.id ?? '',
      caller: session.caller,
      send: (event_type, data) => sendFrame(textFrame(eventText(name, event_type, data))),
      sendFrame,
    };
    try {
      await named?.family.bootstrap?.(subscriber, services);
    } catch (error) {
      failed({ err: error, channel: name, session: session.id }, 'a new subscriber could not be given its beginning');
      if (subscription.state === 'ended') return;
      hub.leave(subscription);
      session.error('SUBSCRIBE_FAILED', name);
    }
  }

  /** The first page after `seq`, empty when nothing was missed; null when not everything after it can still be sent. */
  private async recoverable(channel: Channel, seq: number): Promise<readonly HistoryEntry[] | null> {
    if (seq === channel.seq) return [];
    if (seq > channel.seq) {
      // Made up, or seen on a node that is ahead of this one: the database knows, and then this node will get there.
      return seq <= (await this.deps.outbox.head(channel.name)) && (await channel.reached(seq, CATCH_UP_MS))
        ? []
        : null;
    }
    const next = await this.page(channel, seq);
    return next[0]?.before === seq ? next : null;
  }

  /**
   * Sends the history after `subscription.seq`, a page whenever the socket has taken the one before, and joins at the
   * end.
   */
  private async replay(subscription: Subscription, first: readonly HistoryEntry[] = []): Promise<void> {
    const { session, channel } = subscription;
    const { hub, failed } = this.deps;
    try {
      if (first.length > 0) this.sendPage(subscription, first);
      for (;;) {
        await session.writable();
        if (subscription.state === 'ended' || !session.open) return;
        if (subscription.seq >= channel.seq) return hub.join(subscription);
        const page = await this.page(channel, subscription.seq);
        if (subscription.state !== 'replaying' || !session.open) return;
        if (page[0]?.before !== subscription.seq) return hub.drop(subscription); // trimmed away meanwhile
        this.sendPage(subscription, page);
      }
    } catch (error) {
      failed({ err: error, channel: channel.name, session: session.id }, 'a replay broke off');
      if (subscription.state !== 'ended') hub.drop(subscription);
    }
  }

  private sendPage(subscription: Subscription, page: readonly HistoryEntry[]): void {
    const { session, channel } = subscription;
    for (const entry of page) {
      // Not past the tail of this node: from there on the live stream brings it. And never past a hole.
      if (entry.before >= channel.seq || entry.before !== subscription.seq) break;
      // The frame itself, shared by all that are sent it: a crowd that resumes at once is no crowd of copies.
      session.enqueue(entry);
      subscription.seq += 1;
      this.deps.metrics.sent += 1;
    }
    session.pump();
  }

  /** The next messages after `seq`: from memory where they are, else from the outbox. */
  private async page(channel: Channel, seq: number): Promise<readonly HistoryEntry[]> {
    const kept = channel.history?.after(seq, PAGE.messages, PAGE.bytes);
    const oldest = Date.now() - this.deps.resume_window_ms;
    if (kept && kept.length > 0 && kept[0]!.created_at > oldest) return kept;
    const rows = await this.deps.outbox.page(channel.name, seq, PAGE);
    return rows.map((row) => framed(channel, row));
  }
}

/** Rows of a page that several clients asked for at once are framed once. */
const framed_rows = new WeakMap<StoredMessage, HistoryEntry>();

function framed(channel: Channel, row: StoredMessage): HistoryEntry {
  let entry = framed_rows.get(row);
  if (!entry) {
    entry = historyEntry(row, textFrame(storedMessageText(channel.message_type, channel.idAt(row.seq), row)));
    framed_rows.set(row, entry);
  }
  return entry;
}
