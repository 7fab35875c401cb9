import { z } from 'zod';
import { authenticated, get, notFound, query } from '../../app/operation';
import { EMOTE_PROVIDERS } from '../../domain/chat/chat-messages';
import { PLATFORMS } from '../../domain/common/vendors';
import { userEmotesOf } from '../../services/chat/user-emotes';
import { isGuildOf } from '../../views/connections/discord-guilds';

const Emote = z
  .object({ id: z.string(), name: z.string(), url: z.string().nullable(), animated: z.boolean() })
  .meta({ id: 'Emote' });
const EmoteSet = z.object({ provider: z.enum(EMOTE_PROVIDERS), emotes: z.array(Emote) }).meta({ id: 'EmoteSet' });
const BadgePicture = z
  .object({ kind: z.string(), id: z.string(), image_url: z.string().nullable() })
  .meta({ id: 'BadgePicture' });
const UserEmotes = z.object({ sets: z.array(EmoteSet) }).meta({ id: 'UserEmoteSets' });
const ChannelEmotes = z
  .object({
    sets: z.array(EmoteSet),
    badges: z.array(BadgePicture).describe('Pictures of badges, where the platform offers them'),
  })
  .meta({ id: 'EmoteSets' });

/** Emotes that may be written in the chat of a channel, by their providers, and the badges of its chat. */
export const channelEmotes = query({
  name: 'channelEmotes',
  // Source: spec extra facts §12.
  summary: 'Emotes of a channel and of all channels, by their providers, and badges; empty sets are left out',
  rest: get('/v1/emotes/{platform}/{channel_id}'),
  per_minute: 120,
  cache_seconds: 60,
  guard: [authenticated],
  input: z.object({
    platform: z.enum([...PLATFORMS, 'discord']).describe('`discord`: a server that is linked to the active account'),
    channel_id: z.string().regex(/^[\w-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -'),
  }),
  output: ChannelEmotes,
  errors: { GUILD_NOT_FOUND: notFound('Discord server not found') },
  async run({ input: { platform, channel_id }, caller, refuse }, { db, emotes }) {
    if (platform === 'discord' && !(await isGuildOf(db, caller.account_id, channel_id)))
      throw refuse('GUILD_NOT_FOUND');
    const [sets, badges] = await Promise.all([emotes.of(platform, channel_id), emotes.badges(platform, channel_id)]);
    return { sets, badges };
  },
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
  output: UserEmotes,
  async run({ caller }, services) {
    const emotes = await userEmotesOf(services, caller);
    return { sets: emotes.length === 0 ? [] : [{ provider: 'twitch' as const, emotes }] };
  },
});
