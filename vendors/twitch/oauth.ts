import type { HttpClients } from '../http/port';
import type { OAuthVendor } from '../oauth/port';
import { ownerOf } from '../oauth/owner';
import { inBody, post, standardOAuth } from '../oauth/standard';
import { twitchIdentity } from './identity';

/**
 * Source: spec extra-facts §13; the last five are what `channel.moderate` asks for beside them, and `user:bot` lets the
 * app read the chat over a conduit.
 */
const CHANNEL = [
  'channel:read:subscriptions',
  'channel:read:redemptions',
  'channel:manage:redemptions',
  'channel:read:hype_train',
  'channel:read:polls',
  'channel:manage:polls',
  'channel:read:predictions',
  'channel:manage:predictions',
  'channel:read:goals',
  'bits:read',
  'moderator:read:followers',
  'moderator:read:suspicious_users',
  'moderator:manage:suspicious_users',
  'moderator:manage:banned_users',
  'channel:bot',
  'user:bot',
  'user:read:chat',
  'channel:read:ads',
  'channel:manage:raids',
  'channel:moderate',
  'moderator:read:blocked_terms',
  'moderator:read:chat_settings',
  'moderator:read:unban_requests',
  'moderator:read:chat_messages',
  'moderator:read:warnings',
  'moderator:read:moderators',
  'moderator:read:vips',
  'user:write:chat',
] as const;

const BOT = [
  'user:bot',
  'user:read:chat',
  'user:write:chat',
  'moderator:manage:chat_messages',
  'moderator:manage:banned_users',
  'moderator:manage:announcements',
  'moderator:manage:shoutouts',
] as const;

export interface TwitchOAuthOptions {
  id_url: string;
  api_url: string;
}

/** Twitch's OAuth; a refresh may give the same refresh token again. */
export function twitchOAuth(http: HttpClients, { id_url, api_url }: TwitchOAuthOptions): OAuthVendor {
  return standardOAuth(http, {
    vendor: 'twitch',
    bases: [id_url],
    scopes: { channel: CHANNEL, bot: BOT, system_bot: BOT },
    authorize_url: `${id_url}/oauth2/authorize`,
    // The person logged in at Twitch may be somebody else.
    query: () => ({ force_verify: 'true' }),
    token: (app, parameters) => post(`${id_url}/oauth2/token`, { ...inBody(app), ...parameters }),
    revoke: ({ client_id }, { access_token }) => [post(`${id_url}/oauth2/revoke`, { client_id, token: access_token })],
    whose: ({ app, answer }) =>
      ownerOf(twitchIdentity(http, { client_ids: [app.client_id], id_url, api_url }), answer.access_token),
  });
}
