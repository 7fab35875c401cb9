import { z } from 'zod';
import type { HttpClients } from '../http/port';
import { asking, textOf } from '../login/asking';
import type { OAuthVendor } from '../oauth/port';
import { post, standardOAuth } from '../oauth/standard';

const CHANNEL = [
  'user-read-currently-playing',
  'user-read-playback-state',
  'user-modify-playback-state',
  'user-read-recently-played',
  'playlist-read-private',
  'playlist-modify-public',
  'playlist-modify-private',
] as const;

const Me = z.object({
  id: z.string(),
  display_name: z.string().nullish(),
  images: z.array(z.object({ url: z.string() })).nullish(),
});

export interface SpotifyOAuthOptions {
  id_url: string;
  api_url: string;
}

/** Spotify's OAuth: a refresh may give no new refresh token, and there is no way to revoke one. */
export function spotifyOAuth(http: HttpClients, { id_url, api_url }: SpotifyOAuthOptions): OAuthVendor {
  const { ask } = asking(http, 'spotify', [api_url]);
  return standardOAuth(http, {
    vendor: 'spotify',
    bases: [id_url],
    scopes: { channel: CHANNEL },
    authorize_url: `${id_url}/authorize`,
    token({ client_id, client_secret }, parameters) {
      const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64');
      return post(`${id_url}/api/token`, parameters, { authorization: `Basic ${basic}` });
    },
    async whose({ answer }) {
      const headers = { authorization: `Bearer ${answer.access_token}` };
      const me = await ask({ method: 'GET', url: `${api_url}/v1/me`, headers }, Me);
      return {
        platform_user_id: me.id,
        username: me.id,
        display_name: textOf(me.display_name),
        avatar_url: textOf(me.images?.[0]?.url),
      };
    },
  });
}
