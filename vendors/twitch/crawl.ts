import { z } from 'zod';
import type { ChannelCrawl, CrawlApp } from '../crawl/port';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { AppTokens } from '../oauth/app-token';
import { HelixStreams, HelixUser } from './payloads';

const Users = z.object({
  data: z.array(HelixUser.extend({ description: z.string().nullish(), broadcaster_type: z.string().nullish() })),
});

/** Twitch's users by their logins, and what they stream. */
export function twitchCrawl(http: HttpClients, { api_url, id_url }: { api_url: string; id_url: string }): ChannelCrawl {
  const client = http.client('twitch', [hostOf(api_url), hostOf(id_url)]);
  const tokens = new AppTokens(client, id_url);
  async function get<T>(app: CrawlApp, path: string, query: [string, string][], shape: z.ZodType<T>): Promise<T> {
    const url = `${api_url}/helix/${path}?${new URLSearchParams(query).toString()}`;
    const answer = await tokens.use(app, (token) => {
      const headers = { authorization: `Bearer ${token}`, 'client-id': app.client_id };
      return client.ask({ method: 'GET', url, headers });
    });
    return bodyOf(answer, shape, api_url);
  }
  const usersOf = async (app: CrawlApp, by: 'login' | 'id', values: readonly string[]) => {
    const query = values.map((value): [string, string] => [by, value]);
    return (await get(app, 'users', query, Users)).data;
  };
  return {
    most: 100,
    async profiles(ids, app) {
      const users = await usersOf(app, 'id', ids);
      return users.map((user) => ({ platform_channel_id: user.id, ...profileOf(user) }));
    },
    async read(handles, app) {
      const users = await usersOf(app, 'login', handles);
      if (users.length === 0) return [];
      const { data: streams } = await get(
        app,
        'streams',
        [['first', '100'], ...users.map(({ id }): [string, string] => ['user_id', id])],
        HelixStreams,
      );
      return users.map((user) => {
        const { id, login, display_name } = user;
        const stream = streams.find(({ user_id }) => user_id === id);
        return {
          ...{ platform_channel_id: id, handle: login, display_name, ...profileOf(user) },
          broadcast:
            stream === undefined
              ? null
              : {
                  ...{ broadcast_id: stream.id, title: stream.title || null, category: stream.game_name || null },
                  ...{ viewer_count: stream.viewer_count, started_at: stream.started_at },
                },
        };
      });
    },
  };
}

const profileOf = ({ description, broadcaster_type }: z.output<typeof Users>['data'][number]) => ({
  bio: description ?? null,
  broadcaster_type: broadcaster_type || null,
});
