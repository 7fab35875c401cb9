import type { Span } from '../../engines/tracing/port';
import type { StoredMessage } from './envelopes';
import { History } from './history';
import { channelEpoch } from './ids';
import type { Session } from './session';

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

/** Frames of one channel that will leave in one write. */
export interface Gathering {
  frames: Buffer[];
  bytes: number;
  /** Seq of the channel before the first of them. */
  before: number;
  /** Holds messages that are not stored. */
  transient: boolean;
  /** Spans of its messages; null while none is traced. */
  spans: Span[] | null;
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
  /** Frames that wait for company; null while none does. */
  gathering: Gathering | null = null;
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
