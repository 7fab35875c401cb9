import { z } from 'zod';
import { authenticated, get, query } from '../../app/operation';
import { EMOTE_PROVIDERS } from '../../domain/chat/chat-messages';
import { userEmotesOf } from '../../services/chat/user-emotes';
import { PLATFORMS } from '../../domain/common/vendors';

const Emote = z
  .object({ id: z.string(), name: z.string(), url: z.string().nullable(), animated: z.boolean() })
  .meta({ id: 'Emote' });
const EmoteSet = z.object({ provider: z.enum(EMOTE_PROVIDERS), emotes: z.array(Emote) }).meta({ id: 'EmoteSet' });
const EmoteAnswer = z.object({ sets: z.array(EmoteSet) }).meta({ id: 'EmoteSets' });

/** Emotes that may be written in the chat of a channel, by their providers. */
export const channelEmotes = query({
  name: 'channelEmotes',
  // Source: spec extra facts §12.
  summary: 'Emotes of a channel and of all channels, by their providers; empty sets are left out',
  rest: get('/v1/emotes/{platform}/{channel_id}'),
  per_minute: 120,
  cache_seconds: 60,
  guard: [authenticated],
  input: z.object({
    platform: z.enum(PLATFORMS),
    channel_id: z.string().regex(/^[\w-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -'),
  }),
  output: EmoteAnswer,
  run: async ({ input: { platform, channel_id } }, { emotes }) => ({ sets: await emotes.of(platform, channel_id) }),
});

/** Emotes of Twitch that the acting user may write by their login. */
export const userEmotes = query({
  name: 'userEmotes',
  // Source: spec extra facts §12.
  summary: "Emotes of Twitch that the acting user's login may write; no sets without a login",
  rest: get('/v1/emotes/user'),
  per_minute: 120,
  guard: [authenticated],
  input: z.object({}),
  output: EmoteAnswer,
  async run({ caller }, services) {
    const emotes = await userEmotesOf(services, caller);
    return { sets: emotes.length === 0 ? [] : [{ provider: 'twitch' as const, emotes }] };
  },
});
