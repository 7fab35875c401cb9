import type { Twitch, TwitchLogin } from '../../vendors/twitch/port';
import type { Link, Received } from '../runtime/connection/adapter';
import { LOOK } from './frame';
import { type Caught, catchUp, stateId } from './looks/catch-up';
import { isOver, type Known } from './looks/known';

/** Events that cannot be fetched afterwards, as text of the status. */
const LOST = 'follows, cheers, subscriptions, raids, rewards, ad breaks, chat and moderation';

/** Time in which nothing was received; Unix milliseconds, `from` null when unknown. */
export interface TimeGap {
  from: number | null;
  to: number;
}

export interface LookBack {
  twitch: Twitch;
  link: Link;
  login: TwitchLogin;
  /** State before the gap; null when unknown: ends are then not reported. */
  before: Known | null;
  /** State by the events received until now. */
  present(): Known | null;
  signal: AbortSignal;
}

/** Result: the channel's present state, and the parts that could not be read; null once the session is over. */
export type LookedBack = { known: Known; unasked: readonly string[] } | null;

/** Twitch repeats nothing: fetches what the API shows and delivers the events that follow from it. */
export async function lookBack({ twitch, link, login, before, present, signal }: LookBack): Promise<LookedBack> {
  const { channel_id } = link.connection;
  // Reports that arrive while Twitch is asked are newer than its answers.
  const looked_at = new Date().toISOString();
  const found = signal.aborted ? null : await catchUp({ twitch, login, channel_id, before });
  if (found === null || signal.aborted) return null;
  for (const caught of found.events) {
    // The end may have been reported while Twitch was asked.
    if (!isOver(present(), caught.type, caught.event)) void link.deliver(synthetic(caught, channel_id, looked_at));
  }
  return found;
}

/** Reports the gap, for the events that no API shows. */
export function reportGap(link: Link, gap: TimeGap, looked: LookedBack): void {
  const unasked = looked?.unasked ?? [];
  const detail = unasked.length === 0 ? '' : ` Could not be asked: ${unasked.join(', ')}.`;
  link.missed({ ...gap, detail: `What nobody tells afterwards: ${LOST}.${detail}` });
}

/** A notification that Twitch would have sent: its id is equal whichever process makes it, so that it counts once. */
function synthetic({ type, id, event }: Caught, channel_id: string, looked_at: string): Received {
  const value = {
    metadata: {
      message_id: stateId(type, id),
      message_type: 'notification',
      message_timestamp: looked_at,
      subscription_type: type,
      [LOOK]: true,
    },
    payload: { subscription: { type }, event: { broadcaster_user_id: channel_id, ...event } },
  };
  return { text: JSON.stringify(value), value, received_at: Date.now(), age_ms: 0 };
}
