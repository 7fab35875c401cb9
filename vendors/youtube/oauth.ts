import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { asking, textOf } from '../login/asking';
import { TokenRefused } from '../login/port';
import type { OAuthVendor } from '../oauth/port';
import { inBody, post, standardOAuth } from '../oauth/standard';

const FORCE_SSL = 'https://www.googleapis.com/auth/youtube.force-ssl';
const READONLY = 'https://www.googleapis.com/auth/youtube.readonly';

const Channels = z.object({
  items: z
    .array(
      z.object({
        id: z.string(),
        snippet: z
          .object({
            title: z.string().nullish(),
            customUrl: z.string().nullish(),
            thumbnails: z.object({ default: z.object({ url: z.string() }).optional() }).nullish(),
          })
          .optional(),
      }),
    )
    .optional(),
});

export interface YouTubeOAuthOptions {
  id_url: string;
  token_url: string;
  api_url: string;
}

/** Google's OAuth for YouTube: without `prompt=consent` no refresh token comes. */
export function youtubeOAuth(http: HttpClients, { id_url, token_url, api_url }: YouTubeOAuthOptions): OAuthVendor {
  const { ask } = asking(http, 'youtube', [api_url]);
  return standardOAuth(http, {
    vendor: 'youtube',
    bases: [token_url],
    scopes: { channel: [READONLY, FORCE_SSL], bot: [FORCE_SSL], system_bot: [FORCE_SSL] },
    authorize_url: `${id_url}/o/oauth2/v2/auth`,
    query: () => ({ access_type: 'offline', prompt: 'consent', include_granted_scopes: 'false' }),
    token: (app, parameters) => post(`${token_url}/token`, { ...inBody(app), ...parameters }),
    revoke_ends_all: true,
    revoke: (_app, { access_token, refresh_token }) => [
      post(`${token_url}/revoke`, { token: refresh_token ?? access_token }),
    ],
    async whose({ answer }) {
      const url = `${api_url}/youtube/v3/channels?part=id,snippet&mine=true`;
      const headers = { authorization: `Bearer ${answer.access_token}` };
      const [channel] = (await ask({ method: 'GET', url, headers }, Channels)).items ?? [];
      // A Google account without a channel.
      if (channel === undefined) throw new TokenRefused();
      const { snippet } = channel;
      return {
        platform_user_id: channel.id,
        username: textOf(snippet?.customUrl),
        display_name: textOf(snippet?.title),
        avatar_url: textOf(snippet?.thumbnails?.default?.url),
      };
    },
  });
}
