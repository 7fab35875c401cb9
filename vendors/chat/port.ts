import type { Emote } from '../emotes/port';

/** Slug of a platform with chats. */
export type ChatPlatform = 'twitch' | 'youtube' | 'kick' | 'trovo';

/** Credential of a call: the platform user that acts, their access token, and the app that obtained it. */
export interface ChatLogin {
  user_id: string;
  token: string;
  client_id: string;
}

export interface OutgoingMessage {
  channel_id: string;
  text: string;
  /** The platform's id of the message that this one replies to. */
  reply_to: string | null;
  /** YouTube's id of the live chat; null on other platforms. */
  live_chat_id: string | null;
}

/** Somebody whom a moderator acts on in a channel. */
export interface ModeratedUser {
  channel_id: string;
  user_id: string;
  /** Login of the person, for platforms that take no id; null where it is unknown. */
  username: string | null;
  live_chat_id: string | null;
  reason: string | null;
  /** The platform's id of the ban to take back; null where it names none. */
  ban_id: string | null;
}

export interface ModeratedMessage {
  channel_id: string;
  message_id: string;
}

/** Somebody as their platform shows them; null for what it does not tell. */
export interface ChatProfile {
  avatar_url: string | null;
  /** Absent where they take a further call that nobody wants. */
  details?: ChatProfileDetails;
}

export interface ChatProfileDetails {
  description: string | null;
  /** RFC 3339: when their account was made. */
  account_created_at: string | null;
  broadcaster_type: string | null;
}

/** Whether somebody follows a channel, and since when; null where the platform does not tell. */
export type Following = { is_follower: boolean; followed_at: string | null } | null;

export type AnnouncementColor = 'blue' | 'green' | 'orange' | 'purple' | 'primary';

/** Status of a poll or prediction that a channel asks for. */
export type ToolEnd =
  | { tool: 'poll'; status: 'TERMINATED' | 'ARCHIVED' }
  | { tool: 'prediction'; status: 'LOCKED' | 'CANCELED' }
  | { tool: 'prediction'; status: 'RESOLVED'; winning_outcome_id: string };

/** Tools of a broadcaster besides the chat; each call acts with the token of the channel itself. */
export interface ChannelTools {
  raid(by: ChatLogin, target_channel_id: string): Promise<void>;
  cancelRaid(by: ChatLogin): Promise<void>;
  /** Returns the platform's id of the poll. */
  poll(by: ChatLogin, poll: { title: string; choices: readonly string[]; duration_secs: number }): Promise<string>;
  /** Returns the platform's id of the prediction. */
  prediction(
    by: ChatLogin,
    prediction: { title: string; outcomes: readonly string[]; window_secs: number },
  ): Promise<string>;
  end(by: ChatLogin, id: string, end: ToolEnd): Promise<void>;
  treat(by: ChatLogin, user_id: string, treatment: 'active_monitoring' | 'restricted' | 'none'): Promise<void>;
}

/**
 * The platform understood the request and does not do it; `message` is the platform's own, or its status, and `reason`
 * its code where it has one.
 */
export class ChatRefused extends Error {
  override readonly name = 'ChatRefused';
  constructor(
    readonly status: number,
    message: string,
    readonly reason: string | null = null,
  ) {
    super(message);
  }
}

/**
 * Calls to the chat of one platform. Each call is sent once.
 * @throws ChatRefused when the platform does not do it; status 401 for a token that is not taken
 * @throws NotSent when nothing reached the platform; OutcomeUnknown when it may have been done
 */
export interface ChatVendor {
  readonly platform: ChatPlatform;
  /** Most characters (code points) of a message. */
  readonly max_characters: number;
  /**
   * Messages of one sender to one channel within a number of seconds, `privileged` of its broadcaster and moderators;
   * null where the platform publishes no such limit.
   */
  readonly pace: { messages: number; privileged: number; seconds: number } | null;
  /** Returns the platform's id of the message; null where it names none. */
  send(by: ChatLogin, message: OutgoingMessage): Promise<string | null>;
  /**
   * Sends with the app's own token, which keeps the message of a shared chat in the channel that it is sent to. Absent
   * without an app, and where there are no shared chats.
   */
  sendByApp?(sender_id: string, message: OutgoingMessage): Promise<string | null>;
  /**
   * Null where the platform knows nobody of this id; with `whole` it has the details. Throws as `HttpClient.ask`.
   */
  profile(by: ChatLogin, user_id: string, whole: boolean): Promise<ChatProfile | null>;
  /**
   * The platform's id of the login's own channel, where the login names another id; null without a channel. Throws as
   * `HttpClient.ask`.
   */
  ownChannel?(by: ChatLogin): Promise<string | null>;
  /** Throws as `HttpClient.ask`. */
  following?(by: ChatLogin, channel_id: string, user_id: string): Promise<Following>;
  /** Whether somebody subscribes to a channel; null where the token may not ask. Throws as `HttpClient.ask`. */
  subscribing?(by: ChatLogin, channel_id: string, user_id: string): Promise<boolean | null>;
  /** Returns the platform's id of the ban; null where it names none. */
  ban?(by: ChatLogin, who: ModeratedUser): Promise<string | null>;
  /** As {@link ChatVendor.ban}. */
  timeout?(by: ChatLogin, who: ModeratedUser, seconds: number): Promise<string | null>;
  /** Takes a ban or timeout back. */
  unban?(by: ChatLogin, who: ModeratedUser): Promise<void>;
  remove?(by: ChatLogin, message: ModeratedMessage): Promise<void>;
  /** Sends a message that the platform shows with emphasis; absent where the platform offers none. */
  announce?(
    by: ChatLogin,
    announcement: { channel_id: string; text: string; color: AnnouncementColor | null },
  ): Promise<void>;
  /** Shows another channel in the chat; absent where the platform does not offer it. */
  shoutOut?(by: ChatLogin, channels: { channel_id: string; target_channel_id: string }): Promise<void>;
  /** Emotes that the login may use; absent where the platform does not tell them. Throws as `HttpClient.ask`. */
  userEmotes?(by: ChatLogin): Promise<Emote[]>;
  /** Absent where the platform offers none. */
  readonly tools?: ChannelTools;
}
export type ChatVendors = ReadonlyMap<ChatPlatform, ChatVendor>;
