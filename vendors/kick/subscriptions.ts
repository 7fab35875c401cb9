import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import { type HttpAnswer, HttpFailed, type HttpClients } from '../http/port';
import { type KickSubscriptions, SubscriptionsRefused } from './port';

/** Events subscribed at Kick for each connected channel; the app's settings at Kick name the delivery address. */
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

/** Event subscriptions of a Kick channel; the token determines the channel. */
export function kickSubscriptions(http: HttpClients, { api_url }: { api_url: string }): KickSubscriptions {
  const client = http.client('kick', [hostOf(api_url)]);
  const url = `${api_url}/public/v1/events/subscriptions`;
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}`, accept: 'application/json' });

  async function listed(token: string) {
    return bodyOf(await client.ask({ method: 'GET', url, headers: headersOf(token) }), Listed, api_url).data;
  }

  const asked = (token: string, events: readonly object[]): Promise<HttpAnswer> =>
    client.ask({
      method: 'POST',
      url,
      headers: { ...headersOf(token), 'content-type': 'application/json' },
      body: JSON.stringify({ method: 'webhook', events }),
      // Kick does not create an existing subscription twice.
      repeatable: true,
    });

  return {
    async ensure(token, note) {
      const present = await listed(token);
      const ids = present.map(({ id }) => id);
      const there = new Set(present.map(({ event }) => event));
      const events = KICK_EVENTS.filter((name) => !there.has(name)).map((name) => ({ name, version: 1 }));
      if (events.length === 0) return note(ids);
      await note(null);
      const answer = await asked(token, events).catch(async (error: unknown) => {
        if (!isRefusal(error)) throw error;
        await note(ids);
        throw new SubscriptionsRefused(
          events.map(({ name }) => name),
          error.message,
        );
      });
      const made = bodyOf(answer, Made, api_url).data;
      // A subscription whose id Kick does not name leaves the ids unknown, so that its deliveries count.
      const unnamed = made.some(({ error, subscription_id }) => !error && !subscription_id);
      await note(unnamed ? null : [...ids, ...made.flatMap(({ subscription_id }) => subscription_id ?? [])]);
      const refused = made.filter(({ error }) => error);
      if (refused.length > 0)
        throw new SubscriptionsRefused(
          refused.map(({ name }) => name),
          refused[0]!.error!,
        );
    },
    async end(token) {
      const ids = (await listed(token)).map(({ id }) => id);
      if (ids.length === 0) return;
      const query = new URLSearchParams(ids.map((id) => ['id', id]));
      await client.ask({ method: 'DELETE', url: `${url}?${query.toString()}`, headers: headersOf(token) });
    },
  };
}

/** Statuses by which Kick has understood the request and makes nothing; 401 and 429 pass. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 409, 422]);
const isRefusal = (error: unknown): error is HttpFailed => error instanceof HttpFailed && REFUSALS.has(error.status);
