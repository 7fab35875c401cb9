import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpAnswer, HttpClients, HttpRequest } from '../http/port';
import type { TrovoOpenApi } from './port';

export interface TrovoApiOptions {
  api_url: string;
  chat_url: string;
}

const count = z.union([z.string(), z.number()]).nullish();
const ChatToken = z.object({ token: z.string().min(1) });
const Channel = z.object({
  is_live: z.boolean(),
  live_title: z.string().nullish(),
  category_name: z.string().nullish(),
  current_viewers: count,
  followers: count,
  started_at: count,
});

export function trovoOpenApi(http: HttpClients, { api_url, chat_url }: TrovoApiOptions): TrovoOpenApi {
  const client = http.client('trovo', [...new Set([hostOf(api_url), hostOf(chat_url.replace(/^ws/, 'http'))])]);
  const read = <T>(answer: HttpAnswer, shape: z.ZodType<T>): T => bodyOf(answer, shape, api_url);
  const ask = (client_id: string, request: Pick<HttpRequest, 'method' | 'body'>, path: string, token?: string) =>
    client.ask({
      ...request,
      // Nothing that is asked here changes anything.
      repeatable: true,
      url: `${api_url}/openplatform/${path}`,
      headers: {
        accept: 'application/json',
        'client-id': client_id,
        ...(request.body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `OAuth ${token}` }),
      },
    });
  return {
    async ownChatToken(client_id, token) {
      return read(await ask(client_id, { method: 'GET' }, 'chat/token', token), ChatToken).token;
    },
    async channelChatToken(client_id, channel_id) {
      const path = `chat/channel-token/${encodeURIComponent(channel_id)}`;
      return read(await ask(client_id, { method: 'GET' }, path), ChatToken).token;
    },
    async channel(client_id, channel_id) {
      return read(
        await ask(client_id, { method: 'POST', body: JSON.stringify({ channel_id }) }, 'channels/id'),
        Channel,
      );
    },
    chat: () => client.socket({ url: chat_url, max_bytes: 4 << 20 }),
  };
}
