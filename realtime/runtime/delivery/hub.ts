import { type Tracing } from '../../../engines/tracing/port';
import { Channel, type Subscription } from '../channel/channel';
import { storedMessageText, type StoredMessage } from '../relay/envelopes';
import { FanOut } from './fan-out';
import { textFrame } from './frames';
import { SubscribedChannels } from './subscribed-channels';
import { History, historyEntry } from '../channel/history';
import type { RealtimeMetrics } from '../session/metrics';
import { Backpressure } from '../session/backpressure';
import type { Chunk } from '../session/send-queue';
import type { Session } from '../session/session';

/** Kept for resuming clients after the last subscriber left. */
const LINGER_MS = 30_000;

/**
 * The channels of this node and who is on them: a message is framed once here, and handed to the fan-out; a hole in a
 * channel's numbers ends its subscriptions.
 */
export class Hub {
  readonly channels = new SubscribedChannels<Channel>();
  /** Sessions whose sockets did not take everything. */
  readonly blocked = new Set<Session>();
  /** Told of every subscription that ended, whatever ended it. */
  onLeave: (subscription: Subscription) => void = () => undefined;
  /** Called before unused channels are dropped. */
  onSweep: (now: number) => void = () => undefined;
  /** Where frames are gathered and written. */
  readonly fan_out: FanOut;
  /** Backpressure policy of full queues. */
  readonly room: Backpressure;
  private history_bytes = 0;

  constructor(
    private readonly epoch: string,
    private readonly metrics: RealtimeMetrics,
    /**
     * A live subscription got more than its queue holds while its socket still takes bytes: goes on from the history.
     */
    fallBack: (subscription: Subscription) => void,
    private readonly tracing: Tracing,
    /** The `type` of a channel's stored messages. */
    private readonly messageType: (channel: string) => string,
  ) {
    this.room = new Backpressure({
      metrics,
      scheduleReplay: fallBack,
      drop: (subscription, missed) => this.drop(subscription, missed),
    });
    this.fan_out = new FanOut(this.room.offer);
  }

  /** The channel of this name; made when it has none yet (then its head must be read: `seq` is -1). */
  channel(name: string): Channel {
    let channel = this.channels.get(name);
    if (!channel) this.channels.set(name, (channel = new Channel(name, this.messageType(name), this.epoch)));
    return channel;
  }

  /** Sets a new channel's place: rows up to `head` are history, rows that came meanwhile follow. */
  opened(channel: Channel, head: number): void {
    channel.moveTo(head);
    channel.empty_since = Date.now();
    const { early } = channel;
    channel.early = null;
    for (const message of early ?? []) this.stored(message);
  }

  /** Takes a row of the tail, in its order. Never sends past a hole. */
  stored(message: StoredMessage): void {
    const channel = this.channels.get(message.channel);
    if (!channel) return;
    if (channel.seq < 0) {
      (channel.early ??= []).push(message);
      return;
    }
    if (message.seq <= channel.seq) return;
    if (message.seq > channel.seq + 1) {
      this.metrics.holes.inc();
      this.forget(channel, 'CHANNEL_DROPPED');
      return;
    }
    const bytes = textFrame(storedMessageText(channel.message_type, channel.idAt(message.seq), message));
    // The history of a channel that others are forwarded to is not its messages alone.
    const is_whole = channel.forwarded === null;
    this.fan_out.add(channel, bytes, !is_whole);
    if (this.tracing.on && message.trace) this.trace(channel, message.trace);
    channel.moveTo(message.seq);
    if (is_whole) this.history_bytes += (channel.history ??= new History()).add(historyEntry(message, bytes));
    if (this.history_bytes > History.BUDGET) this.trimHistories();
    channel.tap?.stored(message);
  }

  /** From the tail to the sockets; nobody there, no span. */
  private trace(channel: Channel, parent: string): void {
    const subscribers = channel.live.length;
    if (subscribers === 0) return;
    const family = channel.name.slice(0, channel.name.indexOf(':'));
    const attributes = { 'lumio.subscribers': subscribers };
    this.fan_out.trace(channel, this.tracing.start(`push ${family}`, { kind: 'producer', parent, attributes }));
  }

  /** A message of another channel, to live subscribers; those who read what they missed will find it there. */
  forwarded(channel: Channel, text: string): void {
    this.fan_out.add(channel, textFrame(text), true);
  }

  /** A message that is not stored: to everybody who is there, also those who still read their history. */
  transient(name: string, text: string): void {
    const channel = this.channels.get(name);
    if (!channel) return;
    channel.tap?.transient(text);
    if (channel.size === 0) return;
    const bytes = textFrame(text);
    this.fan_out.add(channel, bytes, true);
    if (channel.replaying === null) return;
    const chunk: Chunk = { bytes, count: 1, channel: name, before: channel.seq, transient: true };
    for (const subscription of [...channel.replaying]) {
      const { state, begun, session } = subscription;
      if (state === 'replaying' && begun && this.room.offer(subscription, chunk)) session.pump();
    }
  }

  /**
   * Makes a subscription live at the channel's present place. Nothing may be awaited between reading `channel.seq` and
   * this.
   */
  join(subscription: Subscription): void {
    if (subscription.state !== 'ended') subscription.channel.join(subscription);
  }

  /**
   * Ends a subscription; nothing of its channel is sent to its session any more. Returns how many messages were taken
   * back.
   */
  leave(subscription: Subscription): number {
    if (subscription.state === 'ended') return 0;
    const { session, channel } = subscription;
    channel.end(subscription);
    session.unsubscribed(subscription);
    const taken_back = session.discard(channel.name);
    if (channel.size === 0) channel.empty_since = Date.now();
    this.onLeave(subscription);
    return taken_back;
  }

  /**
   * The client fell behind on this channel: it keeps its session, and may subscribe again from the last id it saw.
   * `missed` messages were never queued.
   */
  drop(subscription: Subscription, missed = 0): void {
    const { session, channel } = subscription;
    this.metrics.dropped_messages.inc(this.leave(subscription) + missed);
    this.metrics.dropped.inc();
    session.error('CHANNEL_DROPPED', channel.name);
  }

  /** Drops a channel and notifies its subscribers. The next subscribe reads the head again. */
  forget(channel: Channel, code: 'CHANNEL_DROPPED' | 'SUBSCRIBE_FAILED'): void {
    channel.forget();
    this.channels.delete(channel.name);
    this.history_bytes -= channel.history?.bytes ?? 0;
    for (const subscription of [...channel.live, ...(channel.replaying ?? [])]) {
      if (code === 'CHANNEL_DROPPED') this.drop(subscription);
      else this.leave(subscription);
    }
  }

  /** Channels with subscribers. */
  count(): number {
    let count = 0;
    for (const channel of this.channels.values()) if (channel.size > 0) count += 1;
    return count;
  }

  /** Lets go of channels that nobody came back to. */
  sweep(now: number): void {
    this.onSweep(now);
    for (const channel of this.channels.values()) {
      if (
        channel.size === 0 &&
        channel.tap === null &&
        channel.opening === null &&
        now - channel.empty_since > LINGER_MS
      ) {
        channel.forget();
        this.channels.delete(channel.name);
        this.history_bytes -= channel.history?.bytes ?? 0;
      }
    }
  }

  /**
   * Gives up every frame kept for reconnecting clients: stored messages were rewritten, and are read from the outbox
   * again.
   */
  forgetHistories(): void {
    for (const channel of this.channels.values()) this.history_bytes -= channel.history?.clear() ?? 0;
  }

  /**
   * The shared history has a budget; the channels that were opened first give theirs up. The outbox still has it all.
   */
  private trimHistories(): void {
    for (const channel of this.channels.values()) {
      if (this.history_bytes <= History.BUDGET / 2) return;
      this.history_bytes -= channel.history?.clear() ?? 0;
    }
  }
}
