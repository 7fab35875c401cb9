import { Signal } from '../../../lib/async/signal';
import type { Span } from '../../../engines/tracing/port';
import type { StoredMessage } from '../relay/envelopes';
import type { History } from './history';
import { channelEpoch, messageId } from './ids';
import type { Session } from '../session/session';

/** Seqs of the channels that are forwarded to one, in a fixed order; replaced, never changed. */
export type Places = readonly number[];

/** Session on a channel. */
export class Subscription {
  /**
   * `live` ones get each frame as it comes; `replaying` ones read the history at their own pace; `ended` ones get
   * nothing.
   */
  state: 'replaying' | 'live' | 'ended' = 'replaying';
  /** Number of the channel's frame that is the first for it since it went live; frames before it are not for it. */
  from = 0;
  /** Place among the channel's live ones. */
  at = -1;
  /** True for a replay after a full queue, which must keep making progress, unlike one after a resume. */
  fell_back = false;
  /** False until it has its beginning, on a channel whose beginning comes before all else. */
  begun = true;

  constructor(
    readonly session: Session,
    readonly channel: Channel,
    /** Last seq sent by a replay, and the one at which it went live: from then on it stands where its channel does. */
    public seq: number,
    /** Like `seq`, of the channels that are forwarded to its own; null where none are. */
    public places: Places | null = null,
  ) {}
}

/** Frames of one channel that will leave in one write. */
export interface Gathering {
  frames: Buffer[];
  bytes: number;
  /** Number of the first of them among the channel's frames. */
  first: number;
  /** Seq of the channel before the first of them. */
  before: number;
  /** Places in the forwarded channels before the first of them; null where none are. */
  places: Places | null;
  /** Index of the last one whose message is not stored; -1 while all are. */
  transient: number;
  /** Some of them are of stored messages. */
  stored: boolean;
  /** Spans of its messages; null while none is traced. */
  spans: Span[] | null;
}

/** Sessions of one channel that have something to be written. */
export interface Outgoing {
  channel: Channel;
  sessions: (Session | null)[];
  /** How many of `sessions` are meant; the rest is room kept for the next time. */
  count: number;
  /** How many of them are done. */
  done: number;
  /** Messages and bytes of their chunks. */
  messages: number;
  bytes: number;
  /** When the first chunk was handed out, by the monotonic clock. */
  since: number;
  spans: Span[] | null;
}

/** Listener of a channel besides its subscribers. */
export interface ChannelTap {
  stored(message: StoredMessage): void;
  /** The whole server message as JSON text. */
  transient(text: string): void;
  /** The channel is forgotten here. */
  gone(): void;
}

/** A channel with subscribers on this node. What only a busy one needs is made when it is needed. */
export class Channel {
  readonly epoch: string;
  /** Last seq seen on this node; -1 until the head is known. */
  seq = -1;
  /** Stored messages that came while the head was being read. */
  early: StoredMessage[] | null = null;
  /** Live subscriptions, unordered. */
  readonly live: Subscription[] = [];
  replaying: Set<Subscription> | null = null;
  history: History | null = null;
  /** Frames given to the fan-out so far, also of messages that are not stored: tells who joined before which. */
  frames = 0;
  /** Frames that wait for company; null while none does. */
  gathering: Gathering | null = null;
  /** Sessions that are to be written; null before the first time. */
  outgoing: Outgoing | null = null;
  /** Its frames gather until then, by the monotonic clock. */
  due = 0;
  /** Due time of frames of stored messages, and of the frames gathered with them. */
  stored_due = 0;
  empty_since = 0;
  tap: ChannelTap | null = null;
  /** How far the channels are that are forwarded to this one; null where none are. */
  forwarded: { readonly places: Places } | null = null;
  gone = false;
  /** Raised with each move; null while nobody waits for one. */
  private moved: Signal | null = null;
  /** Settles when the head is known. */
  opening: Promise<void> | null = null;

  constructor(
    readonly name: string,
    /** The `type` of its stored messages. */
    readonly message_type: string,
    installation_epoch: string,
  ) {
    this.epoch = channelEpoch(installation_epoch, name);
  }

  /** Subscriptions, live or not. */
  get size(): number {
    return this.live.length + (this.replaying?.size ?? 0);
  }

  /** Its place is here from now on. */
  moveTo(seq: number): void {
    this.seq = seq;
    this.moved?.raise();
  }

  /** The id of a message that is sent at `seq`, or after which the channel stands there. */
  idAt(seq: number, places: Places | null = this.forwarded?.places ?? null): string {
    return messageId(this.epoch, seq, places);
  }

  /** This node lets go of it. */
  forget(): void {
    this.gone = true;
    this.moved?.raise();
    const { tap } = this;
    this.tap = null;
    tap?.gone();
  }

  /** True once its place is `seq` or beyond; false when that takes longer, or it is gone before. */
  async reached(seq: number, ms: number): Promise<boolean> {
    const ends_at = performance.now() + ms;
    const left_ms = () => Math.ceil(ends_at - performance.now());
    while (this.seq < seq && !this.gone && left_ms() > 0) await (this.moved ??= new Signal()).wait(left_ms());
    return this.seq >= seq;
  }

  /** A subscription that is new here, or was live, reads the history from here on. */
  replay(subscription: Subscription): void {
    this.remove(subscription);
    subscription.state = 'replaying';
    (this.replaying ??= new Set()).add(subscription);
  }

  /** A subscription that is new here, or has read the history, gets what comes from here on. */
  join(subscription: Subscription): void {
    this.remove(subscription);
    subscription.state = 'live';
    subscription.seq = this.seq;
    subscription.places = this.forwarded?.places ?? null;
    subscription.from = this.frames;
    subscription.at = this.live.push(subscription) - 1;
  }

  end(subscription: Subscription): void {
    this.remove(subscription);
    subscription.state = 'ended';
  }

  private remove(subscription: Subscription): void {
    if (this.replaying?.delete(subscription)) {
      if (this.replaying.size === 0) this.replaying = null;
    } else if (this.live[subscription.at] === subscription) {
      const last = this.live.pop()!;
      if (last !== subscription) this.live[(last.at = subscription.at)] = last;
    }
    subscription.at = -1;
  }
}
