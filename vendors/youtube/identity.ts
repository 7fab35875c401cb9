import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { asking, scopesOf, secondsOf, textOf } from '../login/asking';
import { TokenRefused, type IdentityProvider } from '../login/port';

const TokenInfo = z.object({
  aud: z.string(),
  /** Absent where the token's scope hides its owner. */
  sub: z.string().optional(),
  scope: z.string().optional(),
  exp: z.union([z.string(), z.number()]).optional(),
  email: z.string().optional(),
});
const UserInfo = z.object({
  sub: z.string(),
  name: z.string().nullish(),
  picture: z.string().nullish(),
  email: z.string().nullish(),
});

export interface GoogleOptions {
  client_ids: readonly string[];
  api_url: string;
}

/** YouTube's users log in with Google; its `tokeninfo` names a token's owner and app. */
export function googleIdentity(http: HttpClients, { client_ids, api_url }: GoogleOptions): IdentityProvider {
  const { ask, askIfAllowed } = asking(http, 'google', [api_url]);
  return {
    async identify(token) {
      const about = `${api_url}/oauth2/v3/tokeninfo?access_token=${encodeURIComponent(token)}`;
      const said = await ask({ method: 'GET', url: about }, TokenInfo);
      if (said.sub === undefined || !client_ids.includes(said.aud)) throw new TokenRefused();
      const headers = { authorization: `Bearer ${token}` };
      const user = await askIfAllowed({ method: 'GET', url: `${api_url}/oauth2/v3/userinfo`, headers }, UserInfo);
      const own = user?.sub === said.sub ? user : null;
      return {
        provider_id: said.sub,
        // People at Google have a name and no handle.
        username: null,
        display_name: textOf(own?.name),
        avatar_url: textOf(own?.picture),
        email: textOf(own?.email ?? said.email),
        scopes: scopesOf(said.scope),
        expires_at: secondsOf(said.exp),
      };
    },
  };
}
