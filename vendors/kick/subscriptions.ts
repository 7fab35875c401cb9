import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import type { KickSubscriptions } from './port';

/** What is asked of Kick for each connected channel; where it is delivered is a setting of the app there. */
export const KICK_EVENTS = [
  'chat.message.sent',
  'channel.followed',
  'channel.subscription.new',
  'channel.subscription.renewal',
  'channel.subscription.gifts',
  'livestream.status.updated',
  'moderation.banned',
] as const;

const Listed = z.object({
  data: z.array(z.looseObject({ id: z.string(), event: z.string(), broadcaster_user_id: z.number().optional() })),
});
const Made = z.object({
  data: z.array(
    z.looseObject({ name: z.string(), error: z.string().nullish(), subscription_id: z.string().nullish() }),
  ),
});

/** Kick says with the token whose channel is meant. */
export function kickSubscriptions(http: HttpClients, { api_url }: { api_url: string }): KickSubscriptions {
  const client = http.client('kick', [hostOf(api_url)]);
  const url = `${api_url}/public/v1/events/subscriptions`;
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}`, accept: 'application/json' });

  async function listed(token: string) {
    return bodyOf(await client.ask({ method: 'GET', url, headers: headersOf(token) }), Listed, api_url).data;
  }

  return {
    async ensure(token, note) {
      const present = await listed(token);
      const ids = present.map(({ id }) => id);
      const there = new Set(present.map(({ event }) => event));
      const events = KICK_EVENTS.filter((name) => !there.has(name)).map((name) => ({ name, version: 1 }));
      if (events.length === 0) return note(ids);
      await note(null);
      const answer = await client.ask({
        method: 'POST',
        url,
        headers: { ...headersOf(token), 'content-type': 'application/json' },
        body: JSON.stringify({ method: 'webhook', events }),
        // What is there already is not made twice.
        repeatable: true,
      });
      const made = bodyOf(answer, Made, api_url).data;
      // A subscription whose id Kick does not name leaves the ids unknown, so that its deliveries count.
      const unnamed = made.some(({ error, subscription_id }) => !error && !subscription_id);
      await note(unnamed ? null : [...ids, ...made.flatMap(({ subscription_id }) => subscription_id ?? [])]);
      const refused = made.filter(({ error }) => error);
      if (refused.length > 0) throw new Error(`Kick refuses ${refused.map(({ name }) => name).join(', ')}`);
    },
    async end(token) {
      const ids = (await listed(token)).map(({ id }) => id);
      if (ids.length === 0) return;
      const query = new URLSearchParams(ids.map((id) => ['id', id]));
      await client.ask({ method: 'DELETE', url: `${url}?${query.toString()}`, headers: headersOf(token) });
    },
  };
}
