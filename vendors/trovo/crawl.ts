import { z } from 'zod';
import { Slots } from '../../lib/async/slots';
import type { ChannelCrawl, CrawlApp, ShownChannel, ShownProfile } from '../crawl/port';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';

const count = z.union([z.string(), z.number()]).nullish();
const Users = z.object({
  users: z.array(
    z.object({ channel_id: z.union([z.string(), z.number()]), username: z.string(), nickname: z.string().nullish() }),
  ),
});
const Channel = z.object({
  is_live: z.boolean(),
  live_title: z.string().nullish(),
  category_name: z.string().nullish(),
  current_viewers: count,
  streamer_info: z.string().nullish(),
  started_at: count,
});

/** Calls at a time. */
const AT_ONCE = 4;

/** Trovo's channels by their user names: one call for all ids, and one for each channel. */
export function trovoCrawl(http: HttpClients, { api_url }: { api_url: string }): ChannelCrawl {
  const client = http.client('trovo', [hostOf(api_url)]);
  const calls = new Slots(AT_ONCE);
  async function post<T>({ client_id }: CrawlApp, path: string, body: object, shape: z.ZodType<T>): Promise<T> {
    const headers = { accept: 'application/json', 'content-type': 'application/json', 'client-id': client_id };
    const url = `${api_url}/openplatform/${path}`;
    const request = { method: 'POST' as const, url, headers, body: JSON.stringify(body), repeatable: true };
    return bodyOf(await client.ask(request), shape, api_url);
  }
  return {
    most: 25,
    profiles: (ids, app) =>
      Promise.all(
        ids.map((platform_channel_id) =>
          calls.use(async (): Promise<ShownProfile> => {
            const of = await post(app, 'channels/id', { channel_id: platform_channel_id }, Channel);
            return { platform_channel_id, bio: of.streamer_info ?? null, broadcaster_type: null };
          }),
        ),
      ),
    async read(handles, app) {
      const { users } = await post(app, 'getusers', { user: handles }, Users);
      return Promise.all(
        users.map(({ channel_id, username, nickname }) =>
          calls.use(async (): Promise<ShownChannel> => {
            const id = String(channel_id);
            const of = await post(app, 'channels/id', { channel_id: id }, Channel);
            return {
              ...{ platform_channel_id: id, handle: username, display_name: nickname || username },
              ...{ bio: of.streamer_info ?? null, broadcaster_type: null },
              broadcast: of.is_live
                ? {
                    ...{ broadcast_id: null, title: of.live_title || null, category: of.category_name || null },
                    viewer_count: Number(of.current_viewers ?? 0),
                    started_at: timeOf(of.started_at),
                  }
                : null,
            };
          }),
        ),
      );
    },
  };
}

/** Trovo writes seconds since 1970. */
const timeOf = (seconds: string | number | null | undefined): string | null => {
  const ms = Number(seconds ?? 0) * 1000;
  return ms > 0 ? new Date(ms).toISOString() : null;
};
