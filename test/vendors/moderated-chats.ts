import { randomUUID } from 'node:crypto';
import type { FakeAnswer, FakeCall, FakeCloud } from './cloud';
import type { FakeTokens } from './cloud-tokens';
import { FakeTrovo, TROVO_CLIENT } from './trovo-cloud';
import { FakeTwitch, TWITCH_CLIENT } from './twitch-cloud';
import { type FakeBroadcast, FakeYoutube } from './youtube-cloud';

export const CHATS = ['twitch', 'youtube', 'trovo'] as const;
export type Chat = (typeof CHATS)[number];

/** A call of a bot to a chat. */
export interface BotCall {
  chat: Chat;
  act: 'say' | 'delete' | 'timeout' | 'ban';
  /** The platform's id of the token's owner. */
  by: string;
  /** Text of a message, id of a deleted message, else the person. */
  about: string;
  /** Message that a message replies to, seconds of a timeout. */
  more?: string | number | undefined;
}

/** A person's line. */
export interface Said {
  user: string;
  text: string;
  roles?: readonly ('broadcaster' | 'moderator' | 'vip' | 'subscriber')[];
}

type Members = Record<string, any>;
type Taken = Omit<BotCall, 'chat' | 'by'>;
const REFUSED: FakeAnswer = { status: 401, body: { message: 'invalid access token' } };
const SECRET = 'chats-secret';

/**
 * The chats of one channel on Twitch, YouTube and Trovo, with the messages and acts of bots. A message comes back over
 * the chat, as the platforms send it to everybody.
 */
export class ModeratedChats {
  readonly twitch = new FakeTwitch();
  readonly youtube = new FakeYoutube();
  readonly trovo = new FakeTrovo();
  readonly calls: BotCall[] = [];
  private broadcast: FakeBroadcast | null = null;
  private channels!: Record<Chat, string>;

  async start(): Promise<this> {
    await Promise.all([this.twitch, this.youtube, this.trovo].map((cloud) => cloud.start()));
    this.youtube.quota = 1_000_000_000;
    this.takeTwitch();
    this.takeYoutube();
    this.takeTrovo();
    return this;
  }

  async close(): Promise<void> {
    await Promise.all([this.twitch, this.youtube, this.trovo].map((cloud) => cloud.close()));
  }

  env(): Record<string, string> {
    const { twitch, youtube, trovo } = this;
    return {
      LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
      LUMIO_LIVE__LOOK_EVERY: '1s',
      LUMIO_TWITCH__CLIENT_ID: TWITCH_CLIENT,
      LUMIO_TWITCH__CLIENT_SECRET: SECRET,
      LUMIO_TWITCH__ID_URL: twitch.base_url,
      LUMIO_TWITCH__API_URL: twitch.base_url,
      LUMIO_TWITCH__EVENTSUB_URL: twitch.eventsub_url,
      LUMIO_GOOGLE__CLIENT_ID: 'youtube-client',
      LUMIO_GOOGLE__CLIENT_SECRET: SECRET,
      LUMIO_GOOGLE__ID_URL: youtube.base_url,
      LUMIO_GOOGLE__TOKEN_URL: youtube.base_url,
      LUMIO_GOOGLE__API_URL: youtube.base_url,
      LUMIO_GOOGLE__DAILY_QUOTA: '100000000',
      LUMIO_TROVO__CLIENT_ID: TROVO_CLIENT,
      LUMIO_TROVO__CLIENT_SECRET: SECRET,
      LUMIO_TROVO__ID_URL: trovo.base_url,
      LUMIO_TROVO__API_URL: trovo.base_url,
      LUMIO_TROVO__CHAT_URL: trovo.chat_url,
    };
  }

  /** Registers the channels, by the platforms' ids. YouTube has a chat only in a broadcast. */
  open(channels: Record<Chat, string>): void {
    this.channels = channels;
    this.twitch.channel(channels.twitch);
    this.trovo.channel(channels.trovo);
    this.broadcast = this.youtube.goLive(channels.youtube);
  }

  /** Whether a line is received on all platforms. */
  isListened(): boolean {
    const { twitch, youtube, trovo, channels } = this;
    const has_chat = twitch.subscriptionsOf(channels.twitch).some(({ type }) => type === 'channel.chat.message');
    return has_chat && trovo.listening(channels.trovo).size > 0 && youtube.listeners(this.broadcast!) > 0;
  }

  /** Sends a line to everybody in a chat; returns the id of the message. */
  say(chat: Chat, { user, text, roles = [] }: Said): string {
    if (chat === 'youtube') {
      const isChatOwner = roles.includes('broadcaster');
      const flags = { isChatModerator: roles.includes('moderator'), isChatSponsor: roles.includes('subscriber') };
      return String(this.youtube.text(this.broadcast!, user, text, { isChatOwner, ...flags })['id']);
    }
    if (chat === 'trovo') {
      const line = { content: text, sender_id: user, user_name: `n${user}`, nick_name: `Name ${user}` };
      return String(this.trovo.say(this.channels.trovo, { ...line, roles: roles.map(onTrovo) })['message_id']);
    }
    const { twitch: broadcaster_user_id } = this.channels;
    const message_id = randomUUID();
    this.twitch.notify(broadcaster_user_id, 'channel.chat.message', {
      ...{ broadcaster_user_id, chatter_user_id: user, chatter_user_login: `n${user}`, message_id },
      ...{ chatter_user_name: `Name ${user}`, message: { text, fragments: [{ type: 'text', text }] } },
      ...{ message_type: 'text', color: '', badges: roles.map((set_id) => ({ set_id, id: '1', info: '' })) },
    });
    return message_id;
  }

  /** A person becomes a member of the channel on YouTube. */
  join(user: string): void {
    const { live_chat_id } = this.broadcast!;
    const publishedAt = new Date().toISOString();
    this.youtube.say(this.broadcast!, {
      snippet: { type: 'newSponsorEvent', liveChatId: live_chat_id, authorChannelId: user, publishedAt },
      authorDetails: { channelId: user, displayName: user },
    });
  }

  private takeTwitch(): void {
    const { twitch } = this;
    this.take('twitch', twitch, 'POST /helix/chat/messages', ({ body, by }) => {
      const message_id = this.say('twitch', { user: by, text: body['message'] });
      const answer = { data: [{ message_id, is_sent: true, drop_reason: null }] };
      return [{ act: 'say', about: body['message'], more: body['reply_parent_message_id'] }, { body: answer }];
    });
    this.take('twitch', twitch, 'POST /helix/moderation/bans', ({ body, query, by }) => {
      const { user_id, duration } = body['data'] as { user_id: string; duration?: number };
      if (query.get('moderator_id') !== by) return [null, REFUSED];
      const taken = { act: duration === undefined ? 'ban' : 'timeout', about: user_id, more: duration } as const;
      return [taken, { body: { data: [{ user_id, end_time: null }] } }];
    });
    this.take('twitch', twitch, 'DELETE /helix/moderation/chat', ({ query, by }) => {
      if (query.get('moderator_id') !== by) return [null, REFUSED];
      return [{ act: 'delete', about: query.get('message_id')! }, { status: 204 }];
    });
  }

  private takeYoutube(): void {
    const { youtube } = this;
    const has_chat = ({ snippet }: Members) => snippet.liveChatId === this.broadcast?.live_chat_id;
    const NO_CHAT: FakeAnswer = { status: 404, body: { error: { code: 404, message: 'no such live chat' } } };
    this.take('youtube', youtube, 'POST /youtube/v3/liveChat/messages', ({ body, by }) => {
      if (!has_chat(body)) return [null, NO_CHAT];
      const about = body['snippet'].textMessageDetails.messageText as string;
      return [{ act: 'say', about }, { body: { id: this.say('youtube', { user: by, text: about }) } }];
    });
    this.take('youtube', youtube, 'POST /youtube/v3/liveChat/bans', ({ body }) => {
      if (!has_chat(body)) return [null, NO_CHAT];
      const { type, bannedUserDetails, banDurationSeconds } = body['snippet'];
      const act = type === 'permanent' ? 'ban' : 'timeout';
      const more = act === 'ban' ? undefined : Number(banDurationSeconds);
      return [{ act, about: bannedUserDetails.channelId, more }, { body: { id: randomUUID() } }];
    });
    this.take('youtube', youtube, 'DELETE /youtube/v3/liveChat/messages', ({ query }) => [
      { act: 'delete', about: query.get('id')! },
      { status: 204 },
    ]);
  }

  private takeTrovo(): void {
    const { trovo } = this;
    this.take('trovo', trovo, 'POST /openplatform/chat/send', ({ body, by }) => {
      this.say('trovo', { user: by, text: body['content'] });
      return [{ act: 'say', about: body['content'] }, { body: {} }];
    });
    this.take('trovo', trovo, 'POST /openplatform/channels/command', ({ body }) => {
      const [word, name = ''] = String(body['command']).split(' ');
      if (word !== 'ban') return [null, { body: { is_success: false, display_msg: `no command ${word}` } }];
      return [{ act: 'ban', about: name.slice(1) }, { body: { is_success: true, display_msg: '' } }];
    });
  }

  private take(
    chat: Chat,
    cloud: FakeCloud & { tokens: FakeTokens },
    route: string,
    answerOf: (asked: { body: Members; query: URLSearchParams; by: string }) => [Taken | null, FakeAnswer],
  ): void {
    cloud.on(route, ({ headers, body, query }: FakeCall) => {
      const by = cloud.tokens.of(headers.authorization)?.owner;
      if (!by) return REFUSED;
      const [taken, answer] = answerOf({ body: body === '' ? {} : (JSON.parse(body) as Members), query, by });
      if (taken !== null) this.calls.push({ chat, by, ...taken });
      return answer;
    });
  }
}

const onTrovo = (role: string): string => ({ broadcaster: 'streamer', moderator: 'mod' })[role] ?? role;
