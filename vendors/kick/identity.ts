import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { asking, scopesOf, secondsOf, textOf } from '../login/asking';
import { TokenRefused, type IdentityProvider } from '../login/port';

const Introspection = z.object({
  active: z.boolean(),
  client_id: z.string().optional(),
  scope: z.string().optional(),
  exp: z.number().optional(),
});
/** RFC 7662 knows no envelope, Kick's interface has one everywhere. */
const Introspected = z.union([z.object({ data: Introspection }).transform(({ data }) => data), Introspection]);
const Users = z.object({
  data: z.array(
    z.object({
      user_id: z.union([z.number(), z.string()]),
      name: z.string().nullish(),
      email: z.string().nullish(),
      profile_picture: z.string().nullish(),
    }),
  ),
});

export interface KickOptions {
  client_ids: readonly string[];
  id_url: string;
  api_url: string;
}

/** Kick says by introspection which app a token was given to, and by `/users` without an id whose it is. */
export function kickIdentity(http: HttpClients, { client_ids, id_url, api_url }: KickOptions): IdentityProvider {
  const { ask } = asking(http, 'kick', [id_url, api_url]);
  return {
    async identify(token) {
      const headers = { authorization: `Bearer ${token}` };
      const url = `${id_url}/oauth/token/introspect`;
      const said = await ask({ method: 'POST', url, headers }, Introspected);
      if (!said.active || said.client_id === undefined || !client_ids.includes(said.client_id)) {
        throw new TokenRefused();
      }
      const { data: users } = await ask({ method: 'GET', url: `${api_url}/public/v1/users`, headers }, Users);
      const [user] = users;
      // An app's own token belongs to no user.
      if (user === undefined || users.length > 1) throw new TokenRefused();
      return {
        provider_id: String(user.user_id),
        username: textOf(user.name),
        display_name: textOf(user.name),
        avatar_url: textOf(user.profile_picture),
        email: textOf(user.email),
        scopes: scopesOf(said.scope),
        expires_at: secondsOf(said.exp),
      };
    },
  };
}
