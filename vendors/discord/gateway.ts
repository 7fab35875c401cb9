import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import type { DiscordGateway } from './port';

const Gateway = z.object({
  url: z.string(),
  shards: z.int().min(1).catch(1),
  session_start_limit: z.object({ remaining: z.number(), reset_after: z.number() }),
});

/** Hosts of the gateway: where sessions begin, and where they resume. */
const GATEWAY_HOSTS = ['*.discord.gg'];
/** Guilds come whole, with their members. */
const MAX_BYTES = 16 << 20;

/** Discord's gateway, as far as who joins and leaves a guild goes. */
export function discordGateway(http: HttpClients, { api_url }: { api_url: string }): DiscordGateway {
  const client = http.client('discord', [...GATEWAY_HOSTS, hostOf(api_url)]);
  return {
    async place(token) {
      const headers = { authorization: `Bot ${token}` };
      const answer = await client.ask({ method: 'GET', url: `${api_url}/api/v10/gateway/bot`, headers });
      const { url, shards, session_start_limit } = bodyOf(answer, Gateway, api_url);
      const { remaining, reset_after: reset_after_ms } = session_start_limit;
      return { url, shards, remaining, reset_after_ms };
    },
    socket(url) {
      const address = new URL(url);
      address.search = '?v=10&encoding=json';
      return client.socket({ url: address, max_bytes: MAX_BYTES });
    },
  };
}
