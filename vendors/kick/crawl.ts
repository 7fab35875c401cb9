import { z } from 'zod';
import type { ChannelCrawl, CrawlApp } from '../crawl/port';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { AppTokens } from '../oauth/app-token';

const Channels = z.object({
  data: z.array(
    z.object({
      broadcaster_user_id: z.union([z.number(), z.string()]),
      slug: z.string(),
      channel_description: z.string().nullish(),
      stream_title: z.string().nullish(),
      category: z.object({ name: z.string().nullish() }).nullish(),
      stream: z
        .object({ is_live: z.boolean(), start_time: z.string().nullish(), viewer_count: z.number().nullish() })
        .nullish(),
    }),
  ),
});

/** Kick's channels by their slugs. */
export function kickCrawl(http: HttpClients, { api_url, id_url }: { api_url: string; id_url: string }): ChannelCrawl {
  const client = http.client('kick', [hostOf(api_url), hostOf(id_url)]);
  const tokens = new AppTokens(client, id_url, '/oauth/token');
  async function channelsOf(app: CrawlApp, by: 'slug' | 'broadcaster_user_id', values: readonly string[]) {
    const query = new URLSearchParams(values.map((value) => [by, value]));
    const url = `${api_url}/public/v1/channels?${query.toString()}`;
    const answer = await tokens.use(app, (token) =>
      client.ask({ method: 'GET', url, headers: { authorization: `Bearer ${token}` } }),
    );
    return bodyOf(answer, Channels, api_url).data;
  }
  return {
    most: 50,
    async profiles(ids, app) {
      const channels = await channelsOf(app, 'broadcaster_user_id', ids);
      return channels.map(({ broadcaster_user_id, channel_description }) => ({
        ...{ platform_channel_id: String(broadcaster_user_id), bio: channel_description ?? null },
        broadcaster_type: null,
      }));
    },
    async read(handles, app) {
      const channels = await channelsOf(app, 'slug', handles);
      return channels.map(({ broadcaster_user_id, slug, channel_description, stream_title, category, stream }) => ({
        ...{ platform_channel_id: String(broadcaster_user_id), handle: slug, display_name: slug },
        ...{ bio: channel_description ?? null, broadcaster_type: null },
        broadcast:
          stream?.is_live === true
            ? {
                ...{ broadcast_id: null, title: stream_title || null, category: category?.name || null },
                ...{ viewer_count: stream.viewer_count ?? 0, started_at: stream.start_time ?? null },
              }
            : null,
      }));
    },
  };
}
