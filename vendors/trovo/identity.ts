import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { asking, secondsOf, textOf } from '../login/asking';
import { TokenRefused, type IdentityProvider } from '../login/port';

const Validated = z.object({
  uid: z.string().min(1),
  client_id: z.string(),
  scopes: z.array(z.string()).nullish(),
  /** Unix seconds as text. */
  expire_ts: z.union([z.string(), z.number()]).nullish(),
});
const UserInfo = z.object({
  userId: z.string(),
  userName: z.string().nullish(),
  nickName: z.string().nullish(),
  email: z.string().nullish(),
  profilePic: z.string().nullish(),
});

export interface TrovoOptions {
  client_ids: readonly string[];
  api_url: string;
}

/** Trovo says at `/openplatform/validate` whose a token is and which app it was given to; each call names the app. */
export function trovoIdentity(http: HttpClients, { client_ids, api_url }: TrovoOptions): IdentityProvider {
  const { ask, askIfAllowed } = asking(http, 'trovo', [api_url]);
  const own = client_ids[0]!;
  return {
    async identify(token) {
      const headers = { accept: 'application/json', authorization: `OAuth ${token}`, 'client-id': own };
      const said = await ask({ method: 'GET', url: `${api_url}/openplatform/validate`, headers }, Validated);
      if (!client_ids.includes(said.client_id)) throw new TokenRefused();
      const user = await askIfAllowed(
        {
          method: 'GET',
          url: `${api_url}/openplatform/getuserinfo`,
          headers: { ...headers, 'client-id': said.client_id },
        },
        UserInfo,
      );
      const profile = user?.userId === said.uid ? user : null;
      return {
        provider_id: said.uid,
        username: textOf(profile?.userName),
        display_name: textOf(profile?.nickName),
        avatar_url: textOf(profile?.profilePic),
        email: textOf(profile?.email),
        scopes: said.scopes ?? [],
        client_id: said.client_id,
        expires_at: secondsOf(said.expire_ts),
      };
    },
  };
}
