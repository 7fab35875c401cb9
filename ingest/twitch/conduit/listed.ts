import type { OAuthApp } from '../../../vendors/oauth/port';
import type { Conduit, TwitchConduits } from '../../../vendors/twitch/port';
import { namedBy } from './condition';
import type { SubscriptionChange } from './store';

type Page = Awaited<ReturnType<TwitchConduits['subscriptions']>>;

/** Twitch lists ended subscriptions for days, also those of earlier conduits: they may fill pages. */
const MAX_PAGES = 10;

/** Reads a channel's active subscriptions over the conduit from Twitch, by name. */
export async function listedAtTwitch(
  twitch: Pick<TwitchConduits, 'subscriptions'>,
  { app, conduit }: { app: OAuthApp; conduit: Conduit },
  channel_id: string,
): Promise<ReadonlyMap<string, SubscriptionChange>> {
  const found = new Map<string, SubscriptionChange>();
  let after: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const asked = { user_id: channel_id, ...(after !== null && { after }) };
    const answer: Page = await twitch.subscriptions(app, asked);
    for (const { id, type, condition, conduit_id, enabled, created_at } of answer.subscriptions) {
      const named = namedBy(type, condition);
      if (!enabled || conduit_id !== conduit.id || named?.channel_id !== channel_id) continue;
      const { name } = named;
      const since = created_at ?? new Date().toISOString();
      found.set(name, { name, subscription_id: id, since, refused: null, consent: null });
    }
    after = answer.after;
    if (after === null) break;
  }
  return found;
}
