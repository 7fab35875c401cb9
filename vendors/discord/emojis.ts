import { z } from 'zod';
import { usable } from '../emotes/sources';
import type { EmoteSource } from '../emotes/port';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import { type HttpClients, HttpFailed } from '../http/port';

const Emojis = z.array(
  z.object({
    id: z.string().nullable(),
    name: z.string().nullable(),
    animated: z.boolean().nullish(),
    available: z.boolean().nullish(),
  }),
);
const DEADLINE_MS = 5_000;

/** Emojis of the servers that a bot is in. */
export function discordEmojis(
  http: HttpClients,
  { api_url, bot_token }: { api_url: string; bot_token: string },
): EmoteSource {
  const client = http.client('discord-emojis', [hostOf(api_url)]);
  return {
    provider: 'discord',
    channels: {
      platforms: ['discord'],
      async emotes(_platform, guild_id) {
        const url = `${api_url}/api/v10/guilds/${encodeURIComponent(guild_id)}/emojis`;
        const headers = { authorization: `Bot ${bot_token}` };
        try {
          const answer = await client.ask({ method: 'GET', url, headers, deadline_ms: DEADLINE_MS });
          const emojis = bodyOf(answer, Emojis, api_url).flatMap(({ id, name, animated, available }) =>
            id === null || name === null || available === false
              ? []
              : [{ id, name, url: addressOf(id, animated === true), animated: animated === true }],
          );
          return usable(emojis);
        } catch (error) {
          // The bot is not in the server.
          if (error instanceof HttpFailed && (error.status === 403 || error.status === 404)) return [];
          throw error;
        }
      },
    },
  };
}

const addressOf = (id: string, animated: boolean): string =>
  `https://cdn.discordapp.com/emojis/${encodeURIComponent(id)}.${animated ? 'gif' : 'png'}`;
