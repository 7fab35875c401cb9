import { type ChannelEmotes, createChannelEmotes } from '../../services/chat/emotes';
import { discordEmojis } from '../../vendors/discord/emojis';
import { emoteSources } from '../../vendors/emotes/sources';
import { trovoEmotes } from '../../vendors/trovo/emotes';
import { twitchBadges } from '../../vendors/twitch/badges';
import { youtubeEmojis } from '../../vendors/youtube/emojis';
import type { Logger } from '../../engines/log/port';
import { type HttpDeps, openHttp } from './http';
import type { Settings } from '../../kernel/settings/settings';

/** Emotes and badges of channels, once for all parts of the process. */
export function openEmotes(deps: Omit<HttpDeps, 'settings'> & { settings: Settings; log: Logger }): ChannelEmotes {
  const { settings, log } = deps;
  const { twitch, trovo, discord } = settings;
  const http = openHttp(deps);
  const [twitch_client] = twitch.client_id;
  const [trovo_client] = trovo.client_id;
  const { client_secret } = twitch;
  const app = twitch_client !== undefined && client_secret ? { client_id: twitch_client, client_secret } : null;
  return createChannelEmotes({
    emotes: [
      ...(trovo_client === undefined ? [] : [trovoEmotes(http, { ...trovo, client_id: trovo_client })]),
      youtubeEmojis(http, settings.emotes),
      ...emoteSources(http, settings.emotes),
      ...(discord.bot_token === '' ? [] : [discordEmojis(http, discord)]),
    ],
    badges: app === null ? [] : [twitchBadges(http, { ...twitch, app })],
    log,
  });
}
