import { z } from 'zod';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { chatCall, chatRead, profileText } from '../chat/calls';
import { type ChatLogin, ChatRefused, type ChatVendor } from '../chat/port';

const Users = z.object({ data: z.array(z.object({ profile_picture: z.string().nullish() })) });
const Channels = z.object({ data: z.array(z.object({ channel_description: z.string().nullish() })) });
const Sent = z.object({
  data: z.object({ is_sent: z.boolean().nullish(), message_id: z.string().nullish() }).nullish(),
  message: z.string().nullish(),
});

/**
 * Calls of Kick's API for a channel's chat, without bans (doc2 §4.3 "Moderation per platform"). Source: vendors.md §4.
 */
export function kickChat(http: HttpClients, { api_url }: { api_url: string }): ChatVendor {
  const client = http.client('kick-chat', [hostOf(api_url)]);
  const url = `${api_url}/public/v1/chat`;
  const headersOf = ({ token }: ChatLogin) => ({ authorization: `Bearer ${token}` });
  return {
    platform: 'kick',
    max_characters: 500,
    pace: null,
    async send(by, { channel_id, text, reply_to }) {
      const answer = await chatCall(client, {
        method: 'POST',
        url,
        headers: headersOf(by),
        part: channel_id,
        json: {
          broadcaster_user_id: Number(channel_id),
          content: text,
          type: 'user',
          ...(reply_to !== null && { reply_to_message_id: reply_to }),
        },
      });
      const said = bodyAs(answer, Sent);
      if (said?.data?.is_sent === false) throw new ChatRefused(200, said.message ?? 'Kick did not send the message');
      return said?.data?.message_id || null;
    },
    async profile(by, user_id, whole) {
      const read = <T>(path: string, shape: z.ZodType<T>) =>
        chatRead(client, { method: 'GET', url: `${api_url}/public/v1/${path}`, headers: headersOf(by) }, shape);
      const id = encodeURIComponent(user_id);
      const [user] = (await read(`users?id=${id}`, Users)).data;
      if (user === undefined) return null;
      const avatar_url = profileText(user.profile_picture);
      if (!whole) return { avatar_url };
      const [channel] = (await read(`channels?broadcaster_user_id=${id}`, Channels)).data;
      const description = profileText(channel?.channel_description);
      return { avatar_url, details: { description, account_created_at: null, broadcaster_type: null } };
    },
    async remove(by, { channel_id, message_id }) {
      await chatCall(client, {
        method: 'DELETE',
        url: `${url}/${encodeURIComponent(message_id)}`,
        headers: headersOf(by),
        part: channel_id,
      });
    },
  };
}
