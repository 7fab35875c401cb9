import type { Span, Tracing } from '../../engines/tracing/port';
import { textFrame } from './frames';
import { History } from './history';
import { storedMessageText, type StoredMessage } from './envelopes';
import { channelEpoch } from './ids';
import { LIMITS } from './limits';
import type { RealtimeMetrics } from './metrics';
import type { Chunk, Session } from './session';

/** Frames of this much or fewer messages are joined into one chunk. */
const CHUNK_BYTES = 128 * 1024;
const CHUNK_MESSAGES = 128;
/** Frames wait at least this long for company after a flush, so that many leave in one write. */
const COALESCE_MS = 4;
/** Sessions are written in slices of about this long; between them the loop serves everybody else. */
const SLICE_MS = 4;
/** Kept for resuming clients after the last subscriber left. */
const LINGER_MS = 30_000;

/** One session on one channel. */
export interface Subscription {
  session: Session;
  channel: Channel;
  /**
   * `live` ones get each frame as it comes; `replaying` ones read the history at their own pace; `ended` ones get
   * nothing.
   */
  state: 'replaying' | 'live' | 'ended';
  /** Last seq sent by a replay. Live subscriptions stand where their channel stands. */
  seq: number;
  /** It replays because its queue was full, not because it resumed: it must keep making progress. */
  fell_back: boolean;
}

/** A channel with subscribers on this node. */
export class Channel {
  readonly epoch: string;
  /** Last seq seen on this node; -1 until the head is known. */
  seq = -1;
  /** Stored messages that came while the head was being read. */
  early: StoredMessage[] = [];
  readonly subscriptions = new Set<Subscription>();
  readonly history = new History();
  pending: Buffer[] = [];
  pending_bytes = 0;
  pending_before = 0;
  pending_transient = false;
  /** Spans of the pending messages; null while none is traced. */
  pending_spans: Span[] | null = null;
  empty_since = 0;
  gone = false;
  /** Settles when the head is known. */
  opening: Promise<void> | null = null;
  private members: readonly Subscription[] | null = null;

  constructor(
    readonly name: string,
    /** The `type` of its stored messages. */
    readonly message_type: string,
    installation_epoch: string,
  ) {
    this.epoch = channelEpoch(installation_epoch, name);
  }

  /** Live subscriptions; the same array until one joins or leaves. */
  live(): readonly Subscription[] {
    return (this.members ??= [...this.subscriptions].filter((subscription) => subscription.state === 'live'));
  }

  changed(): void {
    this.members = null;
  }
}

interface Job {
  members: readonly Subscription[];
  chunk: Chunk;
  /** End when the job's sessions have it. */
  spans: Span[] | null;
}

/**
 * Channels, their subscriptions, and the fan-out: a message is framed once, joined with its neighbours once, and
 * written once per socket.
 */
export class Hub {
  readonly channels = new Map<string, Channel>();
  /** Sessions whose sockets did not take everything. */
  readonly blocked = new Set<Session>();
  /** Told of every subscription that ended, whatever ended it. */
  onLeave: (subscription: Subscription) => void = () => undefined;
  private dirty: Channel[] = [];
  private jobs: Job[] = [];
  private flushing = false;
  private scheduled = false;
  private next_flush_at = 0;
  private history_bytes = 0;

  constructor(
    private readonly epoch: string,
    private readonly metrics: RealtimeMetrics,
    /**
     * A live subscription got more than its queue holds while its socket still takes bytes: goes on from the history.
     */
    private readonly fallBack: (subscription: Subscription) => void,
    private readonly tracing: Tracing,
    /** The `type` of a channel's stored messages. */
    private readonly messageType: (channel: string) => string,
  ) {}

  /** The channel of this name; made when it has none yet (then its head must be read: `seq` is -1). */
  channel(name: string): Channel {
    let channel = this.channels.get(name);
    if (!channel) this.channels.set(name, (channel = new Channel(name, this.messageType(name), this.epoch)));
    return channel;
  }

  /** Sets a new channel's place: rows up to `head` are history, rows that came meanwhile follow. */
  opened(channel: Channel, head: number): void {
    channel.seq = head;
    channel.empty_since = Date.now();
    const early = channel.early;
    channel.early = [];
    for (const message of early) this.stored(message);
  }

  /** One row of the tail, in the order of the tail. Never sends past a hole. */
  stored(message: StoredMessage): void {
    const channel = this.channels.get(message.channel);
    if (!channel) return;
    if (channel.seq < 0) {
      channel.early.push(message);
      return;
    }
    if (message.seq <= channel.seq) return;
    if (message.seq > channel.seq + 1) {
      this.metrics.holes.inc();
      this.forget(channel, 'CHANNEL_DROPPED');
      return;
    }
    const bytes = textFrame(storedMessageText(channel.message_type, channel.epoch, message));
    this.queue(channel, bytes, false);
    if (this.tracing.on && message.trace) this.trace(channel, message.trace);
    channel.seq = message.seq;
    this.history_bytes += channel.history.add(message.seq, bytes, Date.parse(message.created_at));
    if (this.history_bytes > History.BUDGET) this.trimHistories();
  }

  /** From the tail to the sockets; nobody there, no span. */
  private trace(channel: Channel, parent: string): void {
    const subscribers = channel.live().length;
    if (subscribers === 0) return;
    const family = channel.name.slice(0, channel.name.indexOf(':'));
    const attributes = { 'lumio.subscribers': subscribers };
    (channel.pending_spans ??= []).push(this.tracing.start(`push ${family}`, { kind: 'producer', parent, attributes }));
  }

  /** A message that is not stored: to everybody who is there, also those who still read their history. */
  transient(name: string, text: string): void {
    const channel = this.channels.get(name);
    if (!channel || channel.subscriptions.size === 0) return;
    const bytes = textFrame(text);
    this.queue(channel, bytes, true);
    if (channel.live().length === channel.subscriptions.size) return;
    const chunk: Chunk = { bytes, count: 1, channel: name, before: channel.seq, transient: true };
    for (const subscription of channel.subscriptions) {
      if (subscription.state === 'replaying' && this.hasRoom(subscription, chunk)) {
        subscription.session.enqueue(chunk);
        subscription.session.pump();
      }
    }
  }

  private queue(channel: Channel, bytes: Buffer, transient: boolean): void {
    if (channel.live().length === 0) return;
    if (channel.pending.length >= CHUNK_MESSAGES || channel.pending_bytes + bytes.length > CHUNK_BYTES)
      this.seal(channel);
    if (channel.pending.length === 0) {
      this.dirty.push(channel);
      channel.pending_before = channel.seq;
      channel.pending_transient = false;
    }
    if (transient) channel.pending_transient = true;
    channel.pending.push(bytes);
    channel.pending_bytes += bytes.length;
    this.schedule();
  }

  /** Turns a channel's pending frames into a job for those who are live now; who joins later is not meant. */
  private seal(channel: Channel): void {
    const count = channel.pending.length;
    if (count === 0) return;
    const bytes = count === 1 ? channel.pending[0]! : Buffer.concat(channel.pending, channel.pending_bytes);
    channel.pending = [];
    channel.pending_bytes = 0;
    const chunk = {
      bytes,
      count,
      channel: channel.name,
      before: channel.pending_before,
      transient: channel.pending_transient,
    };
    this.jobs.push({ members: channel.live(), chunk, spans: channel.pending_spans });
    channel.pending_spans = null;
  }

  private schedule(): void {
    if (this.scheduled || this.flushing) return;
    this.scheduled = true;
    const wait = this.next_flush_at - performance.now();
    if (wait > 0.5) setTimeout(this.flush, wait);
    else setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    this.scheduled = false;
    this.flushing = true;
    const dirty = this.dirty;
    this.dirty = [];
    for (const channel of dirty) this.seal(channel);
    const jobs = this.jobs;
    this.jobs = [];
    this.write(jobs, performance.now());
  };

  /** Gives every job to its members, channel by channel, then lets each touched session write once. */
  private write(jobs: Job[], started: number): void {
    const touched: Session[] = [];
    for (const { members, chunk } of jobs) {
      for (const subscription of members) {
        if (subscription.state === 'live') this.offer(subscription, chunk, touched);
      }
    }
    let at = 0;
    const slice = (): void => {
      const until = performance.now() + SLICE_MS;
      while (at < touched.length) {
        touched[at++]!.pump();
        if ((at & 31) === 0 && performance.now() > until) {
          setImmediate(slice);
          return;
        }
      }
      for (const { spans } of jobs) if (spans !== null) for (const span of spans) span.end();
      this.flushing = false;
      const now = performance.now();
      // Under load a third of the loop stays free for reading: the longer a flush took, the longer frames gather.
      this.next_flush_at = now + Math.max(COALESCE_MS, Math.min((now - started) / 2, 50));
      if (this.dirty.length > 0 || this.jobs.length > 0) this.schedule();
    };
    slice();
  }

  private offer(subscription: Subscription, chunk: Chunk, touched: Session[]): void {
    const { session } = subscription;
    if (!session.open) return;
    if (this.hasRoom(subscription, chunk)) {
      // Making room tells of what was dropped, which may have been too much for a client that does not read.
      if (!session.open) return;
      session.enqueue(chunk);
      touched.push(session);
      this.metrics.sent += chunk.count;
      return;
    }
    this.giveWay(subscription, chunk.before, chunk.transient, chunk.count);
  }

  /**
   * Whether the chunk fits its session's queue, once channels that fill more of it have given way: a busy channel costs
   * no quiet one.
   */
  private hasRoom({ session, channel }: Subscription, chunk: Chunk): boolean {
    while (!session.fits(chunk.count, chunk.bytes.length)) {
      const heavier = session.heavierThan(channel.name, chunk);
      const busy = session.subscriptions.find((candidate) => candidate.channel.name === heavier);
      if (!busy) return false;
      const { before, count, transient } = session.discard(busy.channel.name);
      this.metrics.sent -= count;
      this.giveWay(busy, before, transient, count);
    }
    return true;
  }

  /**
   * A channel's messages from `before` on cannot wait in the queue: it goes on from the history, or is dropped when
   * they are not stored or nobody reads.
   */
  private giveWay(subscription: Subscription, before: number, transient: boolean, count: number): void {
    const { session, channel } = subscription;
    if (transient || session.stalledFor(Date.now()) >= LIMITS.grace_ms) return this.drop(subscription, count);
    const live = subscription.state === 'live';
    subscription.seq = before;
    subscription.fell_back = true;
    // Who replays already finds its new place there.
    if (!live) return;
    subscription.state = 'replaying';
    channel.changed();
    this.fallBack(subscription);
  }

  /** Drops the channels on which a stalled session is further behind than its queue is long. */
  dropLaggards(session: Session): void {
    for (const subscription of [...session.subscriptions]) {
      const behind = subscription.channel.seq - subscription.seq;
      if (subscription.state === 'replaying' && subscription.fell_back && behind > LIMITS.queue_messages)
        this.drop(subscription, behind);
    }
  }

  /** Hands everything that waits to the sessions now; for the node's end. */
  drain(): void {
    for (const channel of this.channels.values()) this.seal(channel);
    const touched: Session[] = [];
    for (const { members, chunk } of this.jobs) {
      for (const subscription of members) if (subscription.state === 'live') this.offer(subscription, chunk, touched);
    }
    this.jobs = [];
    for (const session of touched) session.pump();
  }

  /** The last seq that a subscription was given: messages of its channel may still wait to be handed out. */
  place(subscription: Subscription): number {
    const { state, seq, channel } = subscription;
    if (state === 'replaying') return seq;
    const waiting = this.jobs.find(
      ({ chunk, members }) => chunk.channel === channel.name && members.includes(subscription),
    );
    if (waiting) return waiting.chunk.before;
    return channel.pending.length > 0 ? channel.pending_before : channel.seq;
  }

  /** True while so much is waiting to be written that the tail had better wait. */
  get saturated(): boolean {
    return this.jobs.length > 64;
  }

  /**
   * Makes a subscription live at the channel's present place. Nothing may be awaited between reading `channel.seq` and
   * this.
   */
  join(subscription: Subscription): void {
    if (subscription.state === 'ended') return;
    const { channel } = subscription;
    this.seal(channel);
    if (this.jobs.length > 0) this.schedule();
    subscription.state = 'live';
    channel.changed();
  }

  /**
   * Ends a subscription; nothing of its channel is sent to its session any more. Returns how many messages were taken
   * back.
   */
  leave(subscription: Subscription): number {
    if (subscription.state === 'ended') return 0;
    subscription.state = 'ended';
    const { session, channel } = subscription;
    channel.subscriptions.delete(subscription);
    channel.changed();
    const at = session.subscriptions.indexOf(subscription);
    if (at >= 0) session.subscriptions.splice(at, 1);
    const taken_back = session.discard(channel.name).count;
    if (channel.subscriptions.size === 0) channel.empty_since = Date.now();
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

  /** Forgets a channel and tells its subscribers. The next subscribe reads the head anew. */
  forget(channel: Channel, code: 'CHANNEL_DROPPED' | 'SUBSCRIBE_FAILED'): void {
    channel.gone = true;
    this.channels.delete(channel.name);
    this.history_bytes -= channel.history.bytes;
    for (const subscription of [...channel.subscriptions]) {
      if (code === 'CHANNEL_DROPPED') this.drop(subscription);
      else this.leave(subscription);
    }
  }

  /** Channels with subscribers. */
  count(): number {
    let count = 0;
    for (const channel of this.channels.values()) if (channel.subscriptions.size > 0) count += 1;
    return count;
  }

  /** Lets go of channels that nobody came back to. */
  sweep(now: number): void {
    for (const channel of this.channels.values()) {
      if (channel.subscriptions.size === 0 && channel.opening === null && now - channel.empty_since > LINGER_MS) {
        channel.gone = true;
        this.channels.delete(channel.name);
        this.history_bytes -= channel.history.bytes;
      }
    }
  }

  /**
   * Gives up every frame kept for reconnecting clients: stored messages were rewritten, and are read from the outbox
   * again.
   */
  forgetHistories(): void {
    for (const channel of this.channels.values()) this.history_bytes -= channel.history.clear();
  }

  /**
   * The shared history has a budget; the channels that were opened first give theirs up. The outbox still has it all.
   */
  private trimHistories(): void {
    for (const channel of this.channels.values()) {
      if (this.history_bytes <= History.BUDGET / 2) return;
      this.history_bytes -= channel.history.clear();
    }
  }
}
