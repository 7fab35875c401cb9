import { z } from 'zod';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { chatCall, chatRead, profileText, profileTime } from '../chat/calls';
import { type ChatLogin, ChatRefused, type ChatVendor } from '../chat/port';

const Channel = z.object({
  profile_pic: z.string().nullish(),
  streamer_info: z.string().nullish(),
  created_at: z.union([z.string(), z.number()]).nullish(),
});

/** Names that a command carries as one word. */
const NAME = /^[^\s/]+$/;

/** Calls of Trovo's Open API for a channel's chat; moderators act by commands. Source: vendors.md §5. */
export function trovoChat(http: HttpClients, { api_url }: { api_url: string }): ChatVendor {
  const client = http.client('trovo-chat', [hostOf(api_url)]);
  const call = ({ token, client_id }: ChatLogin, path: string, json: object) =>
    chatCall(client, {
      method: 'POST',
      url: `${api_url}/openplatform/${path}`,
      headers: { authorization: `OAuth ${token}`, 'client-id': client_id },
      json,
    });
  return {
    platform: 'trovo',
    max_characters: 500,
    pace: null,
    async send(by, { channel_id, text }) {
      await call(by, 'chat/send', { content: text, channel_id: Number(channel_id) });
      return null;
    },
    async profile(by, user_id) {
      const channel = await chatRead(
        client,
        {
          method: 'POST',
          url: `${api_url}/openplatform/channels/id`,
          headers: { accept: 'application/json', 'content-type': 'application/json', 'client-id': by.client_id },
          body: JSON.stringify({ channel_id: user_id }),
          repeatable: true,
        },
        Channel,
      );
      return {
        avatar_url: profileText(channel.profile_pic),
        description: profileText(channel.streamer_info),
        account_created_at: profileTime(Number(channel.created_at) || null),
        broadcaster_type: null,
      };
    },
    async ban(by, { channel_id, username }) {
      if (username === null || !NAME.test(username))
        throw new ChatRefused(400, 'Trovo bans by name, and this name is not known');
      await call(by, 'channels/command', { command: `ban ${username}`, channel_id: Number(channel_id) });
    },
  };
}
