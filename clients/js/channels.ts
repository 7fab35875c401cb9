// Made by `npm run documents` of the channels that realtime/ declares; not edited by hand.

/** A message of a channel. */
export interface Message<Type extends string, EventType extends string, Data> {
  type: Type;
  channel: string;
  event_type: EventType;
  data: Data;
  /** Names its place on the channel; absent where the message is not stored. */
  id?: string;
}

/** Codes of errors that the server answers. */
export type ErrorCode =
  | 'CHANNEL_DROPPED'
  | 'FEATURE_DISABLED'
  | 'INVALID_FORMAT'
  | 'MESSAGE_TOO_LARGE'
  | 'SUBSCRIBE_FAILED'
  | 'TOKEN_EXPIRED'
  | 'TOKEN_REVOKED'
  | 'UNAUTHORIZED';

export type BroadcastFigures = {
  platform: 'twitch' | 'youtube' | 'kick' | 'trovo';
  broadcast_id: string;
  title: string | null;
  category: string | null;
  tags: string[];
  viewer_count: number;
  /** Of the channel, where the platform tells */
  follower_count: number | null;
  sampled_at: string;
};

export type ChannelTurn = {
  type: 'channel:online' | 'channel:offline';
  platform: 'twitch' | 'youtube' | 'kick' | 'trovo';
  /** The platform's id of the channel; empty where the platform did not say it */
  channel_id: string;
  /** The platform's id of the broadcast, where it gave one */
  broadcast_id: string | null;
  title: string | null;
  category: string | null;
  started_at: string | null;
  ended_at: string | null;
};

export type ChatClearUser = {
  type: 'chat:clear_user';
  platform: 'twitch' | 'youtube' | 'kick' | 'trovo';
  /** The platform's id of the person */
  platform_user_id: string;
  /** Who did it, as far as the platform tells */
  deleted_by: string | null;
  action: 'ban' | 'timeout';
  /** Null: for ever */
  duration_secs: number | null;
  [more: string]: unknown;
};

export type ChatDelete = {
  type: 'chat:delete';
  platform_message_id: string;
  /** Who did it, as far as the platform tells */
  deleted_by: string | null;
  [more: string]: unknown;
};

export type ChatMessage = {
  id: string;
  platform: 'twitch' | 'youtube' | 'kick' | 'trovo';
  platform_message_id?: string | null;
  platform_user_id?: string | null;
  username: string;
  display_name?: string | null;
  avatar_url?: string | null;
  message: string;
  emotes: {
    id: string;
    text: string;
    provider: 'twitch' | '7tv' | 'ffz' | 'bttv' | 'discord' | 'youtube' | 'kick' | 'trovo';
    url?: string | null;
    [more: string]: unknown;
  }[];
  badges: {
    kind: string;
    id?: string | null;
    image_url?: string | null;
    [more: string]: unknown;
  }[];
  reply_to_message_id?: string | null;
  reply_to_username?: string | null;
  reply_to_message?: string | null;
  /** Said in another channel's room, whose chat is shared (twitch) */
  is_shared_chat?: boolean | null;
  source_channel?: {
    platform_channel_id: string;
    login: string;
    display_name: string;
    avatar_url: string | null;
    [more: string]: unknown;
  } | null;
  created_at: string;
  [more: string]: unknown;
};

export type ChatModerationLog = {
  type: 'chat:moderation_log';
  data: {
    action: string;
    platform: 'twitch' | 'youtube' | 'kick' | 'trovo';
    target_user_id: string | null;
    target_username: string | null;
    moderator_name: string | null;
    [more: string]: unknown;
  };
  [more: string]: unknown;
};

export type ChatUserTreatment = {
  type: 'chat:user_treatment_update';
  platform: 'twitch' | 'youtube' | 'kick' | 'trovo';
  /** The platform's id of the person */
  platform_user_id: string;
  user_treatment: 'active_monitoring' | 'restricted' | 'none';
  [more: string]: unknown;
};

export type EventPush = {
  id: string;
  account_id: string;
  /** `platform:action` */
  type: string;
  platform: string;
  /** The vendor's delivery or object id */
  external_id: string | null;
  /** The vendor's payload, digit for digit */
  raw: unknown;
  created_at: string;
  /** `raw` again */
  payload: unknown;
};

export type PresentConnection = {
  connection_id: string;
  display_name: string | null;
  avatar: string | null;
  user_id: string | null;
  account_id: string | null;
  [more: string]: unknown;
};

/** The messages of each channel, by its name. */
export interface Channels {
  /** Changes of the board of ideas as a whole. */
  'ideas:list': Message<'event', string, Record<string, unknown>>;
  /** What an account's automations do. */
  [channel: `automations:${string}`]: Message<'automation' | 'event', string, Record<string, unknown>>;
  /** Which of an account's channels are live, and what they show. */
  [channel: `channel-status:${string}`]:
    | Message<'event', 'channel:online', ChannelTurn>
    | Message<'event', 'channel:offline', ChannelTurn>
    | Message<'event', 'channel:figures', BroadcastFigures>;
  /** The chats of an account's channels, joined; dispatch on `data.type`. */
  [channel: `chat:${string}`]:
    | Message<'chat:message' | 'event', 'chat:message', ChatMessage>
    | Message<'chat:message' | 'event', 'chat:delete', ChatDelete>
    | Message<'chat:message' | 'event', 'chat:clear_user', ChatClearUser>
    | Message<'chat:message' | 'event', 'chat:moderation_log', ChatModerationLog>
    | Message<'chat:message' | 'event', 'chat:user_treatment_update', ChatUserTreatment>;
  /** What happens on an account's channels, as it happens. */
  [channel: `events:${string}`]: Message<'event', string, EventPush>;
  /** What the bot modules of an account's extensions log. */
  [channel: `ext-install-logs:${string}`]: Message<'event', string, Record<string, unknown>>;
  /** What an extension logs, for those who develop it. */
  [channel: `ext-logs:${string}`]: Message<'event', string, Record<string, unknown>>;
  /** Changes of what one install of an extension has stored. */
  [channel: `ext-storage:${string}`]:
    | Message<'event', 'storage:update', Record<string, unknown>>
    | Message<'event', 'extension:updated', Record<string, unknown>>;
  /** Streams of an account that begin, end and change. */
  [channel: `history:${string}`]:
    | Message<'event', 'history:session_started', Record<string, unknown>>
    | Message<'event', 'history:session_updated', Record<string, unknown>>;
  /** Changes of one idea. */
  [channel: `ideas:${string}`]: Message<'event', string, Record<string, unknown>>;
  /** Which provider an account's login was assigned to; nothing else. */
  [channel: `login-assignments:${string}`]: Message<'event', string, {
    provider: string;
  }>;
  /** What one overlay shows; only its own token, or a shared link's, listens. */
  [channel: `overlay:${string}`]: Message<'event', 'overlay:update', Record<string, unknown>>;
  /** Who is on another channel that belongs to an account; whoever subscribes is present. */
  [channel: `presence:${string}`]:
    | Message<'event', 'presence:bootstrap', {
    connections: PresentConnection[];
  }>
    | Message<'event', 'presence:join', PresentConnection>
    | Message<'event', 'presence:leave', PresentConnection>;
  /** Numbers of one broadcast, for everybody. */
  [channel: `public-stats:${string}:${string}`]:
    | Message<'event', 'public-stats:bootstrap', Record<string, unknown>>
    | Message<'event', string, Record<string, unknown>>;
  /** Sounds to play now; any credential of the account listens, those of widgets and overlays included. */
  [channel: `sounds:${string}`]:
    | Message<'event', 'sound:play', Record<string, unknown>>
    | Message<'event', 'sound:stop', Record<string, unknown>>;
  /** What an account is listening to. */
  [channel: `spotify:${string}`]: Message<'spotify:now-playing' | 'event', string, Record<string, unknown>>;
  /** What concerns one user whatever the account, such as their notifications; they alone listen. */
  [channel: `user:${string}`]: Message<'event', string, Record<string, unknown>>;
  /** What one widget shows; only its own token listens. */
  [channel: `widget:${string}`]: Message<'event', 'widget:update', Record<string, unknown>>;
}

export type ChannelName = keyof Channels & string;

/** What a channel of this name delivers. */
export type MessageOf<Name extends ChannelName> = Channels[Name];

/** Channels that clients may broadcast to, given the permission. */
export type WritableChannel =
  | `automations:${string}`
  | `chat:${string}`
  | `events:${string}`;
