import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import { type HttpClients, HttpFailed } from '../http/port';
import type { Emote, EmoteProvider, EmoteSource } from './port';

const MAX_BYTES = 8 << 20;
/** Somebody waits for the answer. */
const DEADLINE_MS = 5_000;

const text = z.union([z.string(), z.number()]).transform(String);
const SevenTv = z.object({
  emote_set: z
    .object({
      emotes: z
        .array(
          z.object({
            id: text,
            name: z.string(),
            data: z.object({ animated: z.boolean().nullish(), host: z.object({ url: z.string() }) }).nullish(),
          }),
        )
        .nullish(),
    })
    .nullish(),
});
const BttvEmote = z.object({ id: text, code: z.string(), animated: z.boolean().nullish() });
const Bttv = z.object({ channelEmotes: z.array(BttvEmote).nullish(), sharedEmotes: z.array(BttvEmote).nullish() });
const Ffz = z.object({
  default_sets: z.array(text).nullish(),
  sets: z.record(
    z.string(),
    z.object({
      emoticons: z.array(
        z.object({
          id: text,
          name: z.string(),
          urls: z.record(z.string(), z.string().nullable()),
          animated: z.record(z.string(), z.string().nullable()).nullish(),
        }),
      ),
    }),
  ),
});

const ID = /^[\w-]{1,64}$/;
const NAME = /^\S{1,100}$/u;

/** Emotes with a good id and name; addresses are https or null. */
export const usable = (emotes: readonly Emote[], id_pattern: RegExp = ID): Emote[] =>
  emotes
    .filter(({ id, name }) => id_pattern.test(id) && NAME.test(name))
    .map((emote) => ({ ...emote, url: secure(emote.url) }));

/** The address where it is https; `//host/path` is completed. */
export function secure(url: string | null): string | null {
  const whole = url?.startsWith('//') ? `https:${url}` : url;
  return whole && URL.canParse(whole) && new URL(whole).protocol === 'https:' ? whole : null;
}

export interface EmoteSettings {
  seventv_url: string;
  bttv_url: string;
  ffz_url: string;
}

/** 7TV, BetterTTV and FrankerFaceZ. Source: their public APIs. */
export function emoteSources(http: HttpClients, { seventv_url, bttv_url, ffz_url }: EmoteSettings): EmoteSource[] {
  function reader(provider: EmoteProvider, base: string) {
    const client = http.client(`emotes-${provider}`, [hostOf(base)]);
    /** Null where the provider does not know what is asked for. */
    return async <T>(path: string, shape: z.ZodType<T>): Promise<T | null> => {
      const url = `${base}/${path}`;
      try {
        const request = { method: 'GET', url, max_bytes: MAX_BYTES, deadline_ms: DEADLINE_MS } as const;
        return bodyOf(await client.ask(request), shape, url);
      } catch (error) {
        if (error instanceof HttpFailed && error.status === 404) return null;
        throw error;
      }
    };
  }
  const seventv = reader('7tv', seventv_url);
  const bttv = reader('bttv', bttv_url);
  const ffz = reader('ffz', ffz_url);
  const emoticons = (found: z.output<typeof Ffz> | null, sets: (id: string) => boolean) =>
    Object.entries(found?.sets ?? {})
      .filter(([id]) => sets(id))
      .flatMap(([, { emoticons: all }]) => all)
      .map(({ id, name, urls, animated }) => ({
        ...{ id, name, animated: Boolean(animated) },
        url: (animated ?? urls)['2'] ?? (animated ?? urls)['1'] ?? null,
      }));
  const ALL = ['twitch', 'youtube', 'kick', 'trovo'] as const;
  return [
    {
      provider: '7tv',
      channels: {
        platforms: ALL,
        async emotes(platform, id) {
          const found = await seventv(`v3/users/${platform}/${id}`, SevenTv);
          const emotes = (found?.emote_set?.emotes ?? []).map(({ id: emote_id, name, data }) => ({
            ...{ id: emote_id, name, animated: data?.animated ?? false },
            url: data ? `${data.host.url}/2x.webp` : null,
          }));
          return usable(emotes);
        },
      },
    },
    {
      provider: 'bttv',
      channels: {
        platforms: ALL,
        async emotes(platform, id) {
          const found = await bttv(`3/cached/users/${platform}/${id}`, Bttv);
          const emotes = [...(found?.channelEmotes ?? []), ...(found?.sharedEmotes ?? [])].map((emote) => ({
            ...{ id: emote.id, name: emote.code, animated: emote.animated ?? false },
            url: `https://cdn.betterttv.net/emote/${emote.id}/2x`,
          }));
          return usable(emotes);
        },
      },
    },
    {
      provider: 'ffz',
      channels: {
        platforms: ['twitch', 'youtube'],
        async emotes(platform, id) {
          const found = await ffz(`v1/room/${platform === 'youtube' ? 'yt' : 'id'}/${id}`, Ffz);
          return usable(emoticons(found, () => true));
        },
      },
      global: {
        platforms: ALL,
        async emotes() {
          const found = await ffz('v1/set/global', Ffz);
          const sets = new Set(found?.default_sets ?? []);
          return usable(emoticons(found, (id) => sets.has(id)));
        },
      },
    },
  ];
}
