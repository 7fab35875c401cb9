import { z } from 'zod';
import { usable } from '../emotes/sources';
import type { Emote, EmoteSource } from '../emotes/port';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';

const TrovoEmotes = z
  .array(
    z.object({
      name: z.string(),
      url: z.string().nullish(),
      webp: z.string().nullish(),
      gifp: z.string().nullish(),
    }),
  )
  .nullish();
const Found = z.object({
  channels: z.object({
    customizedEmotes: z.object({ channel: z.array(z.object({ emotes: TrovoEmotes })).nullish() }).nullish(),
    eventEmotes: TrovoEmotes,
    globalEmotes: TrovoEmotes,
  }),
});
/** `emote_type` of the Open API: all kinds, or those of all channels. */
const OF_CHANNELS = 0;
const MAX_BYTES = 8 << 20;
const DEADLINE_MS = 5_000;

/** Trovo's own emotes, which an app may list. Source: Trovo Open API, "Get Emotes". */
export function trovoEmotes(
  http: HttpClients,
  { api_url, client_id }: { api_url: string; client_id: string },
): EmoteSource {
  const client = http.client('trovo-emotes', [hostOf(api_url)]);
  return {
    provider: 'trovo',
    channels: {
      platforms: ['trovo'],
      async emotes(_platform, channel_id) {
        const answer = await client.ask({
          method: 'POST',
          url: `${api_url}/openplatform/getemotes`,
          headers: { accept: 'application/json', 'content-type': 'application/json', 'client-id': client_id },
          body: JSON.stringify({ emote_type: OF_CHANNELS, channel_id: [channel_id] }),
          repeatable: true,
          max_bytes: MAX_BYTES,
          deadline_ms: DEADLINE_MS,
        });
        const { customizedEmotes, eventEmotes, globalEmotes } = bodyOf(answer, Found, api_url).channels;
        const own = (customizedEmotes?.channel ?? []).flatMap(({ emotes }) => emotes ?? []);
        const all = [...own, ...(eventEmotes ?? []), ...(globalEmotes ?? [])];
        return usable(all.map(emoteOf), ID);
      },
    },
  };
}

/** The name is the id; it may end with `!`. */
const ID = /^[\w-]{1,63}!?$/;

const emoteOf = ({ name, url, webp, gifp }: NonNullable<z.output<typeof TrovoEmotes>>[number]): Emote => ({
  ...{ id: name, name },
  url: webp || gifp || url || null,
  animated: Boolean(webp || gifp),
});
