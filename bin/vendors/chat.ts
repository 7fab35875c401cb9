import type { ChatCalls } from '../../app/job';
import type { Services } from '../../app/services';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { causeOf } from '../../services/chat/causes';
import { moderateChat } from '../../services/chat/moderate-chat';
import { noteModeration } from '../../services/chat/moderation-notes';
import { enrich } from '../../services/chat/person-profiles';
import { postToDiscord } from '../../services/discord/posts';
import { createProfileBreakers } from '../../services/chat/profile-breakers';
import { announce, sendChat } from '../../services/chat/send-chat';
import { shoutOut } from '../../services/chat/shout-out';
import { kickChat } from '../../vendors/kick/chat';
import { trovoChat } from '../../vendors/trovo/chat';
import { twitchChat } from '../../vendors/twitch/chat';
import { youtubeChat } from '../../vendors/youtube/chat';
import type { CallersDeps } from '../callers';
import type { OpenConnections } from './connections';
import { openDiscord } from './discord';
import { openEmotes } from './emotes';
import { openHttp } from './http';

/** Calls of jobs to the chats of accounts. */
export const chatCallsOf = (
  { settings, engines, db }: Pick<CallersDeps, 'settings' | 'engines' | 'db'>,
  chat: ReturnType<typeof openChat>,
  logins: Services['logins'],
): ChatCalls => {
  const { events, records, secrets, subject_keys } = engines;
  const texts = createPersonalTexts(subject_keys);
  // No caller of a job waits for read models.
  const awaitShown = async () => undefined;
  const services = { settings, db, events, records, secrets, texts, logins, awaitShown, ...chat };
  return {
    send: (request) => sendChat(services, request),
    announce: (request) => announce(services, request),
    shoutOut: (request) => shoutOut(services, request),
    moderate: (actor, request) =>
      moderateChat(services, causeOf(services, actor, request.act_id), { ...request, once: true }),
    noteModeration: (actor, request) => noteModeration(services, causeOf(services, actor, request.act_id), request),
    maxCharacters: (platform) => chat.chat.get(platform)!.max_characters,
    postDiscord: (request) => postToDiscord(services, request),
    enrich: (person) => enrich(services, person, false),
  };
};

/** Calls to the chats of platforms. */
export function openChat(
  deps: Pick<CallersDeps, 'settings' | 'engines' | 'db' | 'log' | 'metrics' | 'stops'>,
  { tokens }: Pick<OpenConnections, 'tokens'>,
): Pick<Services, 'chat' | 'discord' | 'emotes' | 'profile_breakers' | 'connection_tokens' | 'spendYoutube'> {
  const { settings, db } = deps;
  const { twitch, google, kick, trovo } = settings;
  const http = openHttp(deps);
  const [client_id] = twitch.client_id;
  const { client_secret } = twitch;
  const app = client_id !== undefined && client_secret !== undefined ? { client_id, client_secret } : null;
  const vendors = [twitchChat(http, { ...twitch, app }), youtubeChat(http, google), kickChat(http, kick)];
  return {
    chat: new Map([...vendors, trovoChat(http, trovo)].map((vendor) => [vendor.platform, vendor])),
    discord: openDiscord(deps),
    emotes: openEmotes(deps),
    profile_breakers: createProfileBreakers(),
    connection_tokens: tokens,
    spendYoutube: createYoutubeQuota({ db, daily_units: google.daily_quota }).spend,
  };
}
