import { z } from 'zod';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { chatCall, chatRead, profileText, profileTime } from '../chat/calls';
import type { ChatLogin, ChatVendor, ModeratedUser } from '../chat/port';

const Channels = z.object({
  items: z
    .array(
      z.object({
        id: z.string().nullish(),
        snippet: z
          .object({
            description: z.string().nullish(),
            publishedAt: z.string().nullish(),
            thumbnails: z.object({ default: z.object({ url: z.string().nullish() }).nullish() }).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});
const Inserted = z.object({ id: z.string().nullish() });

/** Calls of the Data API for a live chat, which the message or ban names. Source: vendors.md §3. */
export function youtubeChat(http: HttpClients, { api_url }: { api_url: string }): ChatVendor {
  const client = http.client('youtube-chat', [hostOf(api_url)]);
  const headersOf = ({ token }: ChatLogin) => ({ authorization: `Bearer ${token}` });
  const base = `${api_url}/youtube/v3/liveChat`;
  const partOf = (live_chat_id: string | null) => (live_chat_id === null ? {} : { part: live_chat_id });

  async function ban(by: ChatLogin, { live_chat_id, user_id }: ModeratedUser, more: object): Promise<string | null> {
    const answer = await chatCall(client, {
      method: 'POST',
      url: `${base}/bans?part=snippet`,
      headers: headersOf(by),
      ...partOf(live_chat_id),
      json: { snippet: { liveChatId: live_chat_id, bannedUserDetails: { channelId: user_id }, ...more } },
    });
    return bodyAs(answer, Inserted)?.id || null;
  }

  return {
    platform: 'youtube',
    max_characters: 200,
    pace: null,
    async send(by, { live_chat_id, text }) {
      const answer = await chatCall(client, {
        method: 'POST',
        url: `${base}/messages?part=snippet`,
        headers: headersOf(by),
        ...partOf(live_chat_id),
        json: {
          snippet: { liveChatId: live_chat_id, type: 'textMessageEvent', textMessageDetails: { messageText: text } },
        },
      });
      return bodyAs(answer, Inserted)?.id || null;
    },
    async profile(by, user_id) {
      const url = `${api_url}/youtube/v3/channels?${new URLSearchParams({ part: 'snippet', id: user_id }).toString()}`;
      const { items } = await chatRead(client, { method: 'GET', url, headers: headersOf(by) }, Channels);
      const [channel] = items ?? [];
      if (channel === undefined) return null;
      return {
        avatar_url: profileText(channel.snippet?.thumbnails?.default?.url),
        details: {
          description: profileText(channel.snippet?.description),
          account_created_at: profileTime(channel.snippet?.publishedAt),
          broadcaster_type: null,
        },
      };
    },
    async ownChannel(by) {
      const url = `${api_url}/youtube/v3/channels?part=id&mine=true`;
      const { items } = await chatRead(client, { method: 'GET', url, headers: headersOf(by) }, Channels);
      return items?.[0]?.id ?? null;
    },
    ban: (by, who) => ban(by, who, { type: 'permanent' }),
    timeout: (by, who, seconds) => ban(by, who, { type: 'temporary', banDurationSeconds: String(seconds) }),
    async unban(by, { ban_id }) {
      const url = `${base}/bans?${new URLSearchParams({ id: ban_id! }).toString()}`;
      await chatCall(client, { method: 'DELETE', url, headers: headersOf(by) });
    },
    async remove(by, { message_id }) {
      const url = `${base}/messages?${new URLSearchParams({ id: message_id }).toString()}`;
      await chatCall(client, { method: 'DELETE', url, headers: headersOf(by) });
    },
  };
}
