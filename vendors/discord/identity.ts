import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { asking, textOf } from '../login/asking';
import { TokenRefused, type IdentityProvider } from '../login/port';
import { readTime } from '../../lib/time/vendor-times';

const Authorization = z.object({
  application: z.object({ id: z.string() }),
  scopes: z.array(z.string()),
  expires: z.string().nullish(),
  /** Absent without the scope `identify`. */
  user: z.object({ id: z.string() }).optional(),
});
const User = z.object({
  id: z.string(),
  username: z.string(),
  global_name: z.string().nullish(),
  avatar: z.string().nullish(),
  email: z.string().nullish(),
});
const PICTURES = 'https://cdn.discordapp.com/avatars';

export interface DiscordOptions {
  client_ids: readonly string[];
  api_url: string;
}

/** Discord says at `/oauth2/@me` whose a token is and which application it was given to. */
export function discordIdentity(http: HttpClients, { client_ids, api_url }: DiscordOptions): IdentityProvider {
  const { ask, askIfAllowed } = asking(http, 'discord', [api_url]);
  return {
    async identify(token) {
      const headers = { authorization: `Bearer ${token}` };
      const said = await ask({ method: 'GET', url: `${api_url}/api/v10/oauth2/@me`, headers }, Authorization);
      if (said.user === undefined || !client_ids.includes(said.application.id)) throw new TokenRefused();
      const user = await askIfAllowed({ method: 'GET', url: `${api_url}/api/v10/users/@me`, headers }, User);
      const own = user?.id === said.user.id ? user : null;
      return {
        provider_id: said.user.id,
        username: textOf(own?.username),
        display_name: textOf(own?.global_name ?? own?.username),
        avatar_url: own?.avatar ? `${PICTURES}/${own.id}/${own.avatar}.png` : null,
        email: textOf(own?.email),
        scopes: said.scopes,
        expires_at: readTime(said.expires),
      };
    },
  };
}
