import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { HelixStreams } from './payloads';
import type { TwitchLogin, TwitchStreams } from './port';

const Followers = z.object({ total: z.int() });
export function twitchStreams(http: HttpClients, { api_url }: { api_url: string }): TwitchStreams {
  const client = http.client('twitch', [hostOf(api_url)]);
  async function get<T>(path: string, { token, client_id }: TwitchLogin, shape: z.ZodType<T>): Promise<T> {
    const headers = { authorization: `Bearer ${token}`, 'client-id': client_id };
    return bodyOf(await client.ask({ method: 'GET', url: `${api_url}/helix/${path}`, headers }), shape, api_url);
  }
  return {
    async live(user_ids, by) {
      const query = new URLSearchParams([['first', '100'], ...user_ids.map((id) => ['user_id', id])]);
      return (await get(`streams?${query.toString()}`, by, HelixStreams)).data;
    },
    async followers(broadcaster_id, by) {
      const query = new URLSearchParams({ broadcaster_id, first: '1' });
      return (await get(`channels/followers?${query.toString()}`, by, Followers)).total;
    },
  };
}
