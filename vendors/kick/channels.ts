import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import type { KickChannels } from './port';

const Channels = z.object({
  data: z.array(
    z.object({
      broadcaster_user_id: z.union([z.number(), z.string()]),
      slug: z.string().nullish(),
      stream_title: z.string().nullish(),
      category: z.object({ name: z.string().nullish() }).nullish(),
      stream: z
        .object({
          is_live: z.boolean(),
          start_time: z.string().nullish(),
          viewer_count: z.number().nullish(),
          custom_tags: z.array(z.string()).nullish(),
        })
        .nullish(),
    }),
  ),
});

export function kickChannels(http: HttpClients, { api_url }: { api_url: string }): KickChannels {
  const client = http.client('kick', [hostOf(api_url)]);
  return {
    async channels(broadcaster_user_ids, token) {
      const query = new URLSearchParams(broadcaster_user_ids.map((id) => ['broadcaster_user_id', id]));
      const url = `${api_url}/public/v1/channels?${query.toString()}`;
      const answer = await client.ask({ method: 'GET', url, headers: { authorization: `Bearer ${token}` } });
      return bodyOf(answer, Channels, api_url).data;
    },
  };
}
