import { randomInt } from 'node:crypto';
import { job, type JobTools } from '../../app/job';
import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { expand } from '../../domain/automation/expansion';
import { isPlatform } from '../../domain/common/vendors';
import { CONNECTION_EVENTS } from '../../domain/connections/connections';
import { DISCORD_FEATURES, DISCORD_GUILD_EVENTS } from '../../domain/connections/discord-guilds';
import {
  DiscordPost,
  feedText,
  LIVE_MESSAGE,
  mirrorText,
  PERSONAL,
  POST_TO_DISCORD,
  postOwner,
} from '../../domain/connections/discord-posts';
import { NotSent } from '../../kernel/job';
import { DiscordLimited } from '../../vendors/discord/port';
import { beforeCall } from '../../services/automation/called';
import { readChannelName } from '../../services/connections/channel-names';
import { markUnknown } from '../../services/discord/posts';
import { discordUse, type DiscordUse } from '../../services/discord/uses';

const PAUSES = { first_ms: 1_000, most_ms: 15_000 };
const TRIES = 300;

/** Posts about an event, a line or a broadcast into a channel of the account's server. */
export const postDiscord = job({
  name: POST_TO_DISCORD,
  payload: DiscordPost,
  personal: PERSONAL,
  retries: TRIES,
  after_unknown: 'end',
  pauses: PAUSES,
  timeout_ms: 20_000,
  lane: ({ account_id, feature }) => `${account_id}:discord:${feature}`,
  owner: ({ connection_id, feature }) => postOwner(connection_id, feature),
  isWanted: async (post, { db }) => !isErased(post) && (await discordUse(db, post)) !== undefined,
  onUnknown: (post) => (tx) => markUnknown(tx, post),
  async run(post, _attempt, { db, texts, chats, log }) {
    const { account_id, cause_id, feature } = post;
    const result = await beforeCall(async () => {
      const use = await discordUse(db, post);
      if (use === undefined) return;
      const text = await textOf({ db, texts }, post, use);
      return chats.postDiscord({ account_id, cause_id, channel_id: use.channel_id, text });
    });
    if (result === undefined) return;
    if (result.sent) return;
    if (result.passing) {
      const { retry_after_ms, error } = result;
      throw retry_after_ms === undefined ? new NotSent(error) : new DiscordLimited(retry_after_ms);
    }
    log.info({ account_id, feature, unknown: result.unknown }, 'a message was not posted in Discord');
    if (result.unknown) return (tx) => markUnknown(tx, post);
  },
});

/** A line whose author was erased meanwhile. */
const isErased = ({ feature, platform_user_id }: DiscordPost): boolean =>
  feature === 'chat_mirror' && platform_user_id === null;

async function textOf(
  services: Pick<JobTools, 'db' | 'texts'>,
  post: DiscordPost,
  { settings }: DiscordUse,
): Promise<string> {
  switch (post.feature) {
    case 'event_feed':
      return feedText(post);
    case 'chat_mirror':
      return mirrorText(post);
    case 'live_notification': {
      const { platform, channel_id, title, category } = post;
      const channel =
        isPlatform(platform) && channel_id !== null
          ? await readChannelName(services, { platform, platform_channel_id: channel_id })
          : null;
      const values = { channel: channel ?? '', platform, title: title ?? '', category: category ?? '' };
      return expand(settings.live_message || LIVE_MESSAGE, values, randomInt);
    }
  }
}

/** Waiting posts end with their use of the server. */
export const discordPostEnds = reactor({
  name: 'discord-post-ends',
  from: 'beginning',
  events: [DISCORD_GUILD_EVENTS, CONNECTION_EVENTS, ACCOUNT_EVENTS],
  on: {
    'discord_guild:channel_removed': ({ connection_id, feature }, { cancel }) =>
      cancel(postOwner(connection_id, feature)),
    'connection:bot_disconnected': ({ connection_id, platform }, { cancel, keep }) => {
      if (platform !== 'discord') return;
      for (const feature of DISCORD_FEATURES) cancel(postOwner(connection_id, feature));
      keep('delete from discord_slash_commands where connection_id = $1', [connection_id]);
    },
    'account:dissolved': ({ account_id }, { keep }) => {
      keep('delete from discord_posts where account_id = $1', [account_id]);
      keep('delete from discord_slash_commands where account_id = $1', [account_id]);
    },
  },
});
