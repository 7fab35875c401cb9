import type { Subscription } from '../channel/channel';
import { LIMITS } from '../channel/limits';
import type { RealtimeMetrics } from './metrics';
import type { Chunk } from './send-queue';
import { clock, type Session } from './session';

export interface QueueRoomDeps {
  metrics: RealtimeMetrics;
  /** Ends a subscription with `CHANNEL_DROPPED`; `missed` messages were never queued. */
  drop(subscription: Subscription, missed?: number): void;
  /** Lets a subscription that was live go on from the history. */
  scheduleReplay(subscription: Subscription): void;
}

/**
 * Backpressure of a session's bounded queue when its socket does not take everything: the channel that fills most of it
 * is demoted first. Source: design §8.
 */
export class Backpressure {
  constructor(private readonly deps: QueueRoomDeps) {}

  /**
   * Puts a chunk into the session's queue, or lets the subscription give way where there is no room. False when it was
   * not queued.
   */
  readonly offer = (subscription: Subscription, chunk: Chunk): boolean => {
    const { session } = subscription;
    if (!session.open) return false;
    if (session.blocked && !this.hasCapacity(subscription, chunk)) {
      this.demoteToReplay(subscription, chunk.before, chunk.transient, chunk.count);
      return false;
    }
    // Demotion sends a notice of the dropped channel, which may have ended a client that does not read.
    if (!session.open) return false;
    session.enqueue(chunk);
    this.deps.metrics.sent += chunk.count;
    return true;
  };

  /**
   * Whether the chunk fits its session's queue, once channels that fill more of it have given way: a busy channel costs
   * no quiet one.
   */
  hasCapacity({ session, channel }: Subscription, chunk: Chunk): boolean {
    while (!session.fits(chunk.count, chunk.bytes.length)) {
      const heavier = session.queue.heavierThan(channel.name, chunk);
      const busy = session.subscriptions.find((candidate) => candidate.channel.name === heavier);
      if (!busy) return false;
      const { before, count, transient } = session.queue.discard(busy.channel.name);
      this.deps.metrics.sent -= count;
      this.demoteToReplay(busy, before, transient, count);
    }
    return true;
  }

  /**
   * A channel's messages from `before` on cannot wait in the queue: it goes on from the history, or is dropped when
   * they are not stored or nobody reads.
   */
  private demoteToReplay(subscription: Subscription, before: number, transient: boolean, count: number): void {
    const { session, channel } = subscription;
    // A message that is stored nowhere cannot be read again: it would be lost without a word.
    const lost = transient || (channel.gathering?.transient ?? -1) >= 0;
    if (lost || session.stalledFor(clock()) >= LIMITS.grace_ms) return this.deps.drop(subscription, count);
    const live = subscription.state === 'live';
    subscription.seq = before;
    subscription.fell_back = true;
    // A subscription that replays already continues from its new position.
    if (!live) return;
    channel.replay(subscription);
    this.deps.scheduleReplay(subscription);
  }

  /** Drops the channels on which a stalled session is further behind than its queue is long. */
  dropLaggards(session: Session): void {
    for (const subscription of [...session.subscriptions]) {
      const behind = subscription.channel.seq - subscription.seq;
      if (subscription.state === 'replaying' && subscription.fell_back && behind > LIMITS.queue_messages)
        this.deps.drop(subscription, behind);
    }
  }
}
