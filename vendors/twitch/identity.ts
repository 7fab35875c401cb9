import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { asking, secondsOf, textOf } from '../login/asking';
import { TokenRefused, type IdentityProvider } from '../login/port';
import { HelixUser } from './payloads';

const Validated = z.object({
  client_id: z.string(),
  /** Absent in an app's own token, which belongs to no user. */
  user_id: z.string().optional(),
  login: z.string().optional(),
  scopes: z.array(z.string()).nullish(),
  expires_in: z.number(),
});
const Users = z.object({
  data: z.array(HelixUser.extend({ profile_image_url: z.string().nullish(), email: z.string().nullish() })),
});

export interface TwitchOptions {
  client_ids: readonly string[];
  id_url: string;
  api_url: string;
}

/** Twitch says at `/oauth2/validate` whose a token is and which app it was given to. */
export function twitchIdentity(http: HttpClients, { client_ids, id_url, api_url }: TwitchOptions): IdentityProvider {
  const { ask, askIfAllowed } = asking(http, 'twitch', [id_url, api_url]);
  return {
    async identify(token) {
      const headers = { authorization: `OAuth ${token}` };
      const said = await ask({ method: 'GET', url: `${id_url}/oauth2/validate`, headers }, Validated);
      if (said.user_id === undefined || !client_ids.includes(said.client_id)) throw new TokenRefused();
      const bearer = { authorization: `Bearer ${token}`, 'client-id': said.client_id };
      const users = await askIfAllowed({ method: 'GET', url: `${api_url}/helix/users`, headers: bearer }, Users);
      const user = users?.data.find(({ id }) => id === said.user_id);
      return {
        provider_id: said.user_id,
        username: textOf(user?.login ?? said.login),
        display_name: textOf(user?.display_name),
        avatar_url: textOf(user?.profile_image_url),
        email: textOf(user?.email),
        scopes: said.scopes ?? [],
        client_id: said.client_id,
        // Tokens of old apps never end: 0.
        expires_at: said.expires_in > 0 ? secondsOf(Date.now() / 1000 + said.expires_in) : null,
      };
    },
  };
}
