import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { textOf } from '../login/asking';
import { TokenRefused } from '../login/port';
import type { OAuthVendor } from '../oauth/port';
import { inBody, post, standardOAuth } from '../oauth/standard';

/** View channels, send messages, embed links, read the history. */
const PERMISSIONS = String((1 << 10) | (1 << 11) | (1 << 14) | (1 << 16));
const PICTURES = 'https://cdn.discordapp.com/icons';

const Guild = z.object({ id: z.string(), name: z.string().nullish(), icon: z.string().nullish() });

/** Discord's OAuth lets the bot into a server, which the answer names; the bot itself has a token of its own. */
export function discordOAuth(http: HttpClients, { api_url }: { api_url: string }): OAuthVendor {
  return standardOAuth(http, {
    vendor: 'discord',
    bases: [api_url],
    scopes: { bot: ['bot', 'applications.commands'] },
    authorize_url: `${api_url}/oauth2/authorize`,
    query: () => ({ permissions: PERMISSIONS }),
    token: (app, parameters) => post(`${api_url}/api/v10/oauth2/token`, { ...inBody(app), ...parameters }),
    revoke: (app, { access_token }) => [
      post(`${api_url}/api/v10/oauth2/token/revoke`, { ...inBody(app), token: access_token }),
    ],
    whose({ answer }) {
      const { success, data } = Guild.safeParse(answer['guild']);
      if (!success) throw new TokenRefused();
      const { id, name, icon } = data;
      const avatar_url = icon ? `${PICTURES}/${id}/${icon}.png` : null;
      return Promise.resolve({ platform_user_id: id, username: null, display_name: textOf(name), avatar_url });
    },
  });
}
