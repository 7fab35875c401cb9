import type { HttpClients } from '../http/port';
import type { OAuthVendor } from '../oauth/port';
import { ownerOf } from '../oauth/owner';
import { inBody, post, standardOAuth } from '../oauth/standard';
import { kickIdentity } from './identity';
import { kickSubscriptions } from './subscriptions';

const CHANNEL = [
  'user:read',
  'channel:read',
  'channel:rewards:read',
  'chat:write',
  'events:subscribe',
  'moderation:ban',
] as const;
const BOT = ['user:read', 'chat:write', 'moderation:ban', 'moderation:chat_message:manage'] as const;

export interface KickOAuthOptions {
  id_url: string;
  api_url: string;
}

/** Kick's OAuth 2.1: PKCE always, and each refresh gives a new refresh token. */
export function kickOAuth(http: HttpClients, { id_url, api_url }: KickOAuthOptions): OAuthVendor {
  const oauth = standardOAuth(http, {
    vendor: 'kick',
    bases: [id_url],
    scopes: { channel: CHANNEL, bot: BOT, system_bot: BOT },
    authorize_url: `${id_url}/oauth/authorize`,
    token: (app, parameters) => post(`${id_url}/oauth/token`, { ...inBody(app), ...parameters }),
    revoke: (_app, { access_token, refresh_token }) =>
      Object.entries({ access_token, refresh_token }).flatMap(([token_hint_type, token]) =>
        token === null ? [] : [post(`${id_url}/oauth/revoke`, { token, token_hint_type })],
      ),
    whose: ({ app, answer }) =>
      ownerOf(kickIdentity(http, { client_ids: [app.client_id], id_url, api_url }), answer.access_token),
  });
  return { ...oauth, endSubscriptions: kickSubscriptions(http, { api_url }).end };
}
