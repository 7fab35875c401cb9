import type { HttpClients, HttpRequest } from '../http/port';
import type { OAuthVendor } from '../oauth/port';
import { ownerOf } from '../oauth/owner';
import { standardOAuth } from '../oauth/standard';
import { trovoIdentity } from './identity';

const CHANNEL = ['user_details_self', 'chat_connect'] as const;
const BOT = ['user_details_self', 'chat_send_self', 'send_to_my_channel', 'manage_messages'] as const;

export interface TrovoOAuthOptions {
  id_url: string;
  api_url: string;
}

/** Trovo's OAuth: JSON bodies, the app's id in a header, and a path for each kind of grant. */
export function trovoOAuth(http: HttpClients, { id_url, api_url }: TrovoOAuthOptions): OAuthVendor {
  const send = (path: string, client_id: string, body: Readonly<Record<string, string>>): HttpRequest => ({
    method: 'POST',
    url: `${api_url}/openplatform/${path}`,
    headers: { accept: 'application/json', 'content-type': 'application/json', 'client-id': client_id },
    body: JSON.stringify(body),
  });
  return standardOAuth(http, {
    vendor: 'trovo',
    bases: [api_url],
    scopes: { channel: CHANNEL, bot: BOT, system_bot: BOT },
    authorize_url: `${id_url}/page/login.html`,
    token({ client_id, client_secret }, { code_verifier: _unknown_there, ...given }) {
      const path = given['grant_type'] === 'refresh_token' ? 'refreshtoken' : 'exchangetoken';
      return send(path, client_id, { client_secret, ...given });
    },
    revoke: ({ client_id }, { access_token }) => [send('revoke', client_id, { access_token })],
    whose: ({ app, answer }) =>
      ownerOf(trovoIdentity(http, { client_ids: [app.client_id], api_url }), answer.access_token),
  });
}
