import { z } from 'zod';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import { type HttpClients, HttpFailed } from '../http/port';
import type { OAuthApp } from '../oauth/port';
import { chatCall, chatRead, profileText, profileTime } from '../chat/calls';
import { type ChatLogin, ChatRefused, type ChatVendor, type ModeratedUser, type OutgoingMessage } from '../chat/port';
import type { Emote } from '../emotes/port';
import { usable } from '../emotes/sources';
import { AppTokens } from '../oauth/app-token';
import { twitchTools } from './channel-tools';

const Sent = z.object({
  data: z.array(
    z.object({
      message_id: z.string().nullish(),
      is_sent: z.boolean(),
      drop_reason: z.object({ code: z.string().nullish(), message: z.string().nullish() }).nullish(),
    }),
  ),
});

const Users = z.object({
  data: z.array(
    z.object({
      profile_image_url: z.string().nullish(),
      description: z.string().nullish(),
      created_at: z.string().nullish(),
      broadcaster_type: z.string().nullish(),
    }),
  ),
});
const UserEmotes = z.object({
  data: z.array(z.object({ id: z.string(), name: z.string(), format: z.array(z.string()).nullish() })),
  pagination: z.object({ cursor: z.string().nullish() }).nullish(),
});
/** Most pages of a login's emotes. */
const EMOTE_PAGES = 20;
const Followers = z.object({ data: z.array(z.object({ user_id: z.string(), followed_at: z.string().nullish() })) });

const Subscribers = z.object({ data: z.array(z.object({ user_id: z.string() })) });

const emoteUrl = (id: string): string =>
  `https://static-cdn.jtvnw.net/emoticons/v2/${encodeURIComponent(id)}/default/dark/2.0`;

export interface TwitchChatOptions {
  api_url: string;
  id_url: string;
  /** The installation's app; null without its secret. */
  app: OAuthApp | null;
}

/** Calls of Helix for a channel's chat; the sender must own the token. Source: vendors.md §2 "Helix calls". */
export function twitchChat(http: HttpClients, { api_url, id_url, app }: TwitchChatOptions): ChatVendor {
  const client = http.client('twitch-chat', [...new Set([hostOf(api_url), hostOf(id_url)])]);
  const app_tokens = new AppTokens(client, id_url);
  const helix = ({ token, client_id }: Pick<ChatLogin, 'token' | 'client_id'>) => ({
    authorization: `Bearer ${token}`,
    'client-id': client_id,
  });
  const urlOf = (path: string, query: Readonly<Record<string, string>>) =>
    `${api_url}/helix/${path}?${new URLSearchParams(query).toString()}`;

  async function say(by: ChatLogin, { channel_id, text, reply_to }: OutgoingMessage, more: object) {
    const answer = await chatCall(client, {
      method: 'POST',
      url: `${api_url}/helix/chat/messages`,
      headers: helix(by),
      part: channel_id,
      json: {
        broadcaster_id: channel_id,
        sender_id: by.user_id,
        message: text,
        ...(reply_to !== null && { reply_parent_message_id: reply_to }),
        ...more,
      },
    });
    const said = bodyAs(answer, Sent)?.data[0];
    if (said?.is_sent === false)
      throw new ChatRefused(200, said.drop_reason?.message ?? said.drop_reason?.code ?? 'Twitch dropped the message');
    return said?.message_id || null;
  }

  async function sayByApp(app: OAuthApp, user_id: string, message: OutgoingMessage): Promise<string | null> {
    const tokenOf = () =>
      app_tokens.token(app).catch((error: unknown) => {
        if (!(error instanceof HttpFailed) && !(error instanceof OutcomeUnknown)) throw error;
        throw new NotSent('Twitch gave no token to the app', { cause: error });
      });
    const say_once = async () =>
      say({ user_id, token: await tokenOf(), client_id: app.client_id }, message, { for_source_only: true });
    try {
      return await say_once();
    } catch (error) {
      if (!(error instanceof ChatRefused) || error.status !== 401) throw error;
      app_tokens.forget(app);
      return say_once();
    }
  }

  async function ban(by: ChatLogin, { channel_id, user_id, reason }: ModeratedUser, more: object): Promise<null> {
    await chatCall(client, {
      method: 'POST',
      url: urlOf('moderation/bans', { broadcaster_id: channel_id, moderator_id: by.user_id }),
      headers: helix(by),
      part: channel_id,
      json: { data: { user_id, ...more, ...(reason !== null && { reason: reason.slice(0, 500) }) } },
    });
    return null;
  }

  return {
    platform: 'twitch',
    max_characters: 500,
    pace: { messages: 20, privileged: 100, seconds: 30 },
    send: (by, message) => say(by, message, {}),
    ...(app && { sendByApp: (sender_id, message) => sayByApp(app, sender_id, message) }),
    async profile(by, user_id) {
      const request = { method: 'GET', url: urlOf('users', { id: user_id }), headers: helix(by) } as const;
      const [user] = (await chatRead(client, request, Users)).data;
      if (user === undefined) return null;
      return {
        avatar_url: profileText(user.profile_image_url),
        details: {
          description: profileText(user.description),
          account_created_at: profileTime(user.created_at),
          broadcaster_type: profileText(user.broadcaster_type),
        },
      };
    },
    async following(by, broadcaster_id, user_id) {
      const url = urlOf('channels/followers', { broadcaster_id, user_id });
      try {
        const { data } = await chatRead(client, { method: 'GET', url, headers: helix(by) }, Followers);
        const found = data.find((one) => one.user_id === user_id);
        return { is_follower: found !== undefined, followed_at: profileTime(found?.followed_at) };
      } catch (error) {
        // The scope moderator:read:followers is missing.
        if (error instanceof HttpFailed && (error.status === 401 || error.status === 403)) return null;
        throw error;
      }
    },
    async subscribing(by, broadcaster_id, user_id) {
      const url = urlOf('subscriptions', { broadcaster_id, user_id });
      try {
        const { data } = await chatRead(client, { method: 'GET', url, headers: helix(by) }, Subscribers);
        return data.some((one) => one.user_id === user_id);
      } catch (error) {
        // The scope channel:read:subscriptions is missing.
        if (error instanceof HttpFailed && (error.status === 401 || error.status === 403)) return null;
        throw error;
      }
    },
    ban: (by, who) => ban(by, who, {}),
    timeout: (by, who, seconds) => ban(by, who, { duration: seconds }),
    async unban(by, { channel_id, user_id }) {
      const query = { broadcaster_id: channel_id, moderator_id: by.user_id, user_id };
      const url = urlOf('moderation/bans', query);
      await chatCall(client, { method: 'DELETE', url, headers: helix(by), part: channel_id });
    },
    async remove(by, { channel_id, message_id }) {
      const query = { broadcaster_id: channel_id, moderator_id: by.user_id, message_id };
      const url = urlOf('moderation/chat', query);
      await chatCall(client, { method: 'DELETE', url, headers: helix(by), part: channel_id });
    },
    async announce(by, { channel_id, text, color }) {
      const query = { broadcaster_id: channel_id, moderator_id: by.user_id };
      await chatCall(client, {
        method: 'POST',
        url: urlOf('chat/announcements', query),
        headers: helix(by),
        part: channel_id,
        json: { message: text, ...(color !== null && { color }) },
      });
    },
    async shoutOut(by, { channel_id, target_channel_id }) {
      const channels = { from_broadcaster_id: channel_id, to_broadcaster_id: target_channel_id };
      const url = urlOf('chat/shoutouts', { ...channels, moderator_id: by.user_id });
      await chatCall(client, { method: 'POST', url, headers: helix(by), part: channel_id });
    },
    async userEmotes(by) {
      const emotes: Emote[] = [];
      let after: string | null = '';
      for (let page = 0; after !== null && page < EMOTE_PAGES; page += 1) {
        const url = urlOf('chat/emotes/user', { user_id: by.user_id, ...(after !== '' && { after }) });
        const read = { method: 'GET', url, headers: helix(by), max_bytes: 4 << 20 } as const;
        const { data, pagination } = await chatRead(client, read, UserEmotes);
        for (const { id, name, format } of data)
          emotes.push({ id, name, url: emoteUrl(id), animated: format?.includes('animated') ?? false });
        after = pagination?.cursor || null;
      }
      return usable(emotes);
    },
    tools: twitchTools(client, api_url),
  };
}
