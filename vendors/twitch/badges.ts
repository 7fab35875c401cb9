import { z } from 'zod';
import { secure } from '../emotes/sources';
import type { BadgePicture, BadgeSource } from '../emotes/port';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import { type HttpClients, HttpFailed } from '../http/port';
import type { OAuthApp } from '../oauth/port';
import { AppTokens } from '../oauth/app-token';

const Badges = z.object({
  data: z.array(
    z.object({
      set_id: z.string(),
      versions: z.array(z.object({ id: z.string(), image_url_2x: z.string().nullish() })),
    }),
  ),
});
const MAX_BYTES = 4 << 20;
const DEADLINE_MS = 5_000;

/** Badges of Twitch's chats, which an app may list without a user. */
export function twitchBadges(
  http: HttpClients,
  { api_url, id_url, app }: { api_url: string; id_url: string; app: OAuthApp },
): BadgeSource {
  const client = http.client('twitch-badges', [...new Set([hostOf(api_url), hostOf(id_url)])]);
  const tokens = new AppTokens(client, id_url);

  async function read(path: string): Promise<BadgePicture[]> {
    const headers = { authorization: `Bearer ${await tokens.token(app)}`, 'client-id': app.client_id };
    const url = `${api_url}/helix/${path}`;
    const answer = await client.ask({ method: 'GET', url, headers, max_bytes: MAX_BYTES, deadline_ms: DEADLINE_MS });
    return bodyOf(answer, Badges, api_url).data.flatMap(({ set_id: kind, versions }) =>
      versions.map(({ id, image_url_2x }) => ({ kind, id, image_url: secure(image_url_2x ?? null) })),
    );
  }

  async function ask(path: string): Promise<BadgePicture[]> {
    try {
      return await read(path);
    } catch (error) {
      if (!(error instanceof HttpFailed) || error.status !== 401) throw error;
      tokens.forget(app);
      return read(path);
    }
  }

  return {
    platform: 'twitch',
    channel: (broadcaster_id) => ask(`chat/badges?${new URLSearchParams({ broadcaster_id }).toString()}`),
    global: () => ask('chat/badges/global'),
  };
}
