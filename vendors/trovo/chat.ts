import { z } from 'zod';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { chatCall, chatRead, platformText, profileText, profileTime } from '../chat/calls';
import { type ChatLogin, ChatRefused, type ChatVendor, type ModeratedUser } from '../chat/port';

const Channel = z.object({
  profile_pic: z.string().nullish(),
  streamer_info: z.string().nullish(),
  created_at: z.union([z.string(), z.number()]).nullish(),
});

const Followers = z.object({
  follower: z
    .array(
      z.object({
        user_id: z.union([z.string(), z.number()]).transform(String),
        followed_at: z.union([z.string(), z.number()]).nullish(),
      }),
    )
    .nullish(),
});
const PAGE_FOLLOWERS = 100;
/** Trovo lists followers, newest first, and finds none by id: one further back stays unknown. */
const FOLLOWER_PAGES = 5;

/** Answer to a command. */
const Commanded = z.object({ is_success: z.boolean().nullish(), display_msg: z.string().nullish() });

/** Calls of Trovo's Open API for a channel's chat; moderators act by commands. Source: vendors.md §5. */
export function trovoChat(http: HttpClients, { api_url }: { api_url: string }): ChatVendor {
  const client = http.client('trovo-chat', [hostOf(api_url)]);
  const call = (
    { token, client_id }: ChatLogin,
    path: string,
    json: { channel_id: number; content?: string; command?: string },
  ) =>
    chatCall(client, {
      method: 'POST',
      url: `${api_url}/openplatform/${path}`,
      headers: { authorization: `OAuth ${token}`, 'client-id': client_id },
      part: String(json.channel_id),
      json,
    });
  async function command(by: ChatLogin, { channel_id, username }: ModeratedUser, word: string): Promise<void> {
    const json = { command: `${word} ${username!}`, channel_id: Number(channel_id) };
    const said = bodyAs(await call(by, 'channels/command', json), Commanded);
    if (said?.is_success === false) throw new ChatRefused(200, platformText(said.display_msg) ?? 'Trovo did not do it');
  }

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
        details: {
          description: profileText(channel.streamer_info),
          account_created_at: profileTime(Number(channel.created_at) || null),
          broadcaster_type: null,
        },
      };
    },
    async following(by, channel_id, user_id) {
      for (let cursor = 0; cursor < FOLLOWER_PAGES; cursor += 1) {
        const page = await chatRead(
          client,
          {
            method: 'POST',
            url: `${api_url}/openplatform/channels/${encodeURIComponent(channel_id)}/followers`,
            headers: { accept: 'application/json', 'content-type': 'application/json', 'client-id': by.client_id },
            body: JSON.stringify({ limit: PAGE_FOLLOWERS, cursor, direction: 'desc' }),
            repeatable: true,
          },
          Followers,
        );
        const followers = page.follower ?? [];
        const found = followers.find((one) => one.user_id === user_id);
        if (found) return { is_follower: true, followed_at: profileTime(Number(found.followed_at) || null) };
        if (followers.length < PAGE_FOLLOWERS) return { is_follower: false, followed_at: null };
      }
      return null;
    },
    async ban(by, who) {
      await command(by, who, 'ban');
      return null;
    },
    unban: (by, who) => command(by, who, 'unban'),
  };
}
