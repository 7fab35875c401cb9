import type { Services } from '../../app/services';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import { kickChat } from '../../vendors/kick/chat';
import { trovoChat } from '../../vendors/trovo/chat';
import { twitchChat } from '../../vendors/twitch/chat';
import { youtubeChat } from '../../vendors/youtube/chat';
import type { CallersDeps } from '../callers';
import type { OpenConnections } from './connections';
import { openEmotes } from './emotes';
import { openHttp } from './http';

/** Calls to the chats of platforms, for operations. */
export function openChat(
  deps: CallersDeps,
  { tokens }: Pick<OpenConnections, 'tokens'>,
): Pick<Services, 'chat' | 'emotes' | 'connection_tokens' | 'spendYoutube'> {
  const { settings, db } = deps;
  const { twitch, google, kick, trovo } = settings;
  const http = openHttp(deps);
  const [client_id] = twitch.client_id;
  const { client_secret } = twitch;
  const app = client_id !== undefined && client_secret !== undefined ? { client_id, client_secret } : null;
  const vendors = [twitchChat(http, { ...twitch, app }), youtubeChat(http, google), kickChat(http, kick)];
  return {
    chat: new Map([...vendors, trovoChat(http, trovo)].map((vendor) => [vendor.platform, vendor])),
    emotes: openEmotes(deps),
    connection_tokens: tokens,
    spendYoutube: createYoutubeQuota({ db, daily_units: google.daily_quota }).spend,
  };
}
