import type { Channel, Places, Subscription } from '../channel/channel';
import { parsePlaces } from '../channel/ids';
import type { Hub } from '../delivery/hub';
import { textFrame } from '../delivery/frames';
import type { RealtimeMetrics } from '../session/metrics';
import type { SocketFailures } from '../session/socket-failures';
import type { Forwarding } from './forwarding';
import type { MissedMessages } from './missed';

export interface PageReplaysDeps {
  hub: Hub;
  forwarding: Pick<Forwarding, 'missedBy'>;
  failed: SocketFailures;
  metrics: RealtimeMetrics;
}

/** Where a subscription of a page begins. */
export interface PageStart {
  missed: MissedMessages;
  /** In the page's own channel, then in those that are forwarded to it. */
  places: Places;
  /** Null without `since`. */
  recovered: boolean | null;
}

/** Brings subscribers of pages from where they stand into the live stream, without a seam. */
export class PageReplays {
  constructor(private readonly deps: PageReplaysDeps) {}

  /** Null when the channel was let go of meanwhile. */
  async start(channel: Channel, since: string | null): Promise<PageStart | null> {
    const missed = await this.deps.forwarding.missedBy(channel);
    if (missed === null) return null;
    const now = missed.ends();
    if (since === null) return { missed, places: now, recovered: null };
    const asked = parsePlaces(channel.epoch, since, now.length - 1);
    const recovered = asked !== null && (await missed.areKept(asked));
    this.deps.metrics.resumed.inc(1, { recovered: String(recovered) });
    return { missed, places: recovered ? asked! : missed.ends(), recovered };
  }

  /** Sends what was missed, a part whenever the socket has taken the one before, and joins at the end. */
  async replay(subscription: Subscription, { missed, places, recovered }: PageStart): Promise<void> {
    const { session, channel } = subscription;
    const { hub, failed } = this.deps;
    const goesOn = () => subscription.state === 'replaying' && session.open;
    try {
      if (recovered === true && goesOn()) await this.sendRemovals(subscription, missed, places);
      for (let at: Places = places; ;) {
        await session.writable();
        if (!goesOn()) return;
        if (missed.isAtEnd(at)) return hub.join(subscription);
        const next = await missed.after(at);
        if (!goesOn()) return;
        if (next === null) return hub.drop(subscription); // trimmed away meanwhile
        for (const message of next.messages) this.send(subscription, message.text);
        session.pump();
        at = next.places;
        subscription.seq = at[0]!;
        subscription.places = at.slice(1);
      }
    } catch (error) {
      failed({ err: error, channel: channel.name, session: session.id }, 'a replay of a page broke off');
      if (subscription.state !== 'ended') hub.drop(subscription);
    }
  }

  private async sendRemovals(subscription: Subscription, missed: MissedMessages, places: Places): Promise<void> {
    for (const text of await missed.removalsBefore(places)) this.send(subscription, text);
    subscription.session.pump();
  }

  private send({ session, channel, seq }: Subscription, text: string): void {
    // Not in the history of the channel: a full queue drops the subscription, which then resumes after its last id.
    session.enqueue({ bytes: textFrame(text), count: 1, channel: channel.name, before: seq, transient: true });
    this.deps.metrics.sent += 1;
  }
}
