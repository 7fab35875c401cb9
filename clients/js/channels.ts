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
  /** The author's first message in the account's own rooms */
  is_first_message?: boolean;
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

export type DrawnEvent = {
  /** Null of a test event */
  id: string | null;
  type: string;
  platform: string;
  user_name: string | null;
  amount: number | null;
  currency: string | null;
  months: number | null;
  count: number | null;
  tier: string | null;
  message: string | null;
  title: string | null;
  created_at: string;
};

export type EventPush = {
  id: string;
  account_id: string;
  /** `platform:action` */
  type: string;
  platform: string;
  /** The vendor's delivery or object id */
  external_id: string | null;
  created_at: string;
  /** `raw` without contact data; null where it is longer than 48 KiB */
  payload: unknown;
};

export type OverlayLayer = {
  id: string;
  type: string;
  name: string;
  config: Record<string, unknown>;
  visible: boolean;
  sort_order: number;
  /** Editors do not move it */
  locked: boolean;
};

export type PagePictures = {
  platform: string;
  channel_id: string;
  /** As of `GET /v1/emotes/{platform}/{channel_id}` */
  sets: unknown[];
  badges: unknown[];
};

export type PresentConnection = {
  connection_id: string;
  display_name: string | null;
  avatar: string | null;
  user_id: string | null;
  account_id: string | null;
  /** Member that the popout token of `user_id` acts for, where that is another */
  acts_for?: string;
  [more: string]: unknown;
};

/**
 * `payload` of the events that the server knows. Vendors add members; of a person who was erased it is the text
 * `[erased]`.
 */
export interface EventPayloads {
  /** Somebody follows the channel */
  'twitch:follower': {
    user_id: string;
    user_login: string;
    user_name: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    followed_at: string;
  };
  /** Somebody subscribes for the first time */
  'twitch:subscribe': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: unknown[];
    };
    notice_type: string;
    sub: {
      sub_tier: string;
      is_prime: boolean;
      duration_months: number;
    };
  };
  /** Subscriptions are given away; stored as `twitch:gift` */
  'twitch:gift_sub': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: unknown[];
    };
    notice_type: string;
    sub_gift: {
      duration_months: number;
      cumulative_total: number;
      recipient_user_id: string;
      recipient_user_login: string;
      recipient_user_name: string;
      sub_tier: string;
      community_gift_id: unknown;
    };
  };
  /** Subscriptions are given away: one to somebody (`sub_gift`), or several to the community (`community_sub_gift`) */
  'twitch:gift': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: unknown[];
    };
    notice_type: string;
    community_sub_gift?: {
      id: string;
      total: number;
      sub_tier: string;
      cumulative_total?: number | null;
    } | null;
  };
  /** Somebody tells that they subscribed again */
  'twitch:resub': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: {
        type: string;
        text: string;
      }[];
    };
    notice_type: string;
    resub: {
      cumulative_months: number;
      duration_months: number;
      streak_months?: number | null;
      sub_tier: string;
      is_prime?: boolean;
      is_gift: boolean;
      gifter_is_anonymous?: unknown;
      gifter_user_id?: unknown;
      gifter_user_login?: unknown;
      gifter_user_name?: unknown;
    };
  };
  /** Somebody goes on paying for a subscription that was given to them */
  'twitch:gift_upgrade': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: unknown[];
    };
    notice_type: string;
    gift_paid_upgrade: {
      gifter_is_anonymous: boolean;
      gifter_user_id?: string | null;
      gifter_user_login?: string | null;
      gifter_user_name?: string | null;
    };
  };
  /** Somebody goes on paying for what was a Prime subscription */
  'twitch:prime_upgrade': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: unknown[];
    };
    notice_type: string;
    prime_paid_upgrade: {
      sub_tier: string;
    };
  };
  /** Somebody who was given a subscription gives one on */
  'twitch:pay_it_forward': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: unknown[];
    };
    notice_type: string;
    pay_it_forward: {
      gifter_is_anonymous: boolean;
      gifter_user_id: string | null;
      gifter_user_login: string | null;
      gifter_user_name: string | null;
      recipient_user_id?: string | null;
      recipient_user_login?: string | null;
      recipient_user_name?: string | null;
    };
  };
  /** Somebody earns the badge of a tier of Bits */
  'twitch:bits_badge': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: {
        type: string;
        text: string;
      }[];
    };
    notice_type: string;
    bits_badge_tier: {
      tier: number;
    };
  };
  /** Somebody watched several broadcasts in a row; `message` is what they said to it */
  'twitch:watch_streak': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name?: string;
    chatter_user_id: string | null;
    chatter_user_login: string | null;
    chatter_user_name?: string | null;
    chatter_is_anonymous: boolean;
    color?: string;
    badges?: {
      set_id: string;
      id: string;
      info: string;
    }[];
    system_message?: string;
    message_id: string;
    message: {
      text: string;
      fragments?: {
        type: string;
        text: string;
      }[];
    };
    notice_type: string;
    watch_streak: {
      streak_count: number;
      channel_points_awarded: number;
    };
  };
  /** Somebody cheers with Bits */
  'twitch:cheer': {
    is_anonymous: boolean;
    user_id: string | null;
    user_login: string | null;
    user_name: string | null;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    message: string;
    bits: number;
  };
  /** Another channel raids this one */
  'twitch:raid': {
    from_broadcaster_user_id: string;
    from_broadcaster_user_login: string;
    from_broadcaster_user_name: string;
    to_broadcaster_user_id: string;
    to_broadcaster_user_login: string;
    to_broadcaster_user_name: string;
    viewers: number;
  };
  /** This channel’s raid has arrived at another one */
  'twitch:raid_done': {
    from_broadcaster_user_id: string;
    from_broadcaster_user_login: string;
    from_broadcaster_user_name: string;
    to_broadcaster_user_id: string;
    to_broadcaster_user_login: string;
    to_broadcaster_user_name: string;
    viewers: number;
  };
  /** A raid of another channel is prepared */
  'twitch:raid_out': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    moderator_user_id: string;
    moderator_user_login: string;
    moderator_user_name: string;
    action: string;
    raid: {
      user_id: string;
      user_login: string;
      user_name: string;
      viewer_count: number;
    };
  };
  /** A raid that was prepared is called off */
  'twitch:unraid': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    moderator_user_id: string;
    moderator_user_login: string;
    moderator_user_name: string;
    action: string;
    unraid: {
      user_id: string;
      user_login: string;
      user_name: string;
    };
  };
  /** Somebody redeems a reward of channel points */
  'twitch:reward': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    user_id: string;
    user_login: string;
    user_name: string;
    user_input: string;
    status: string;
    reward: {
      id: string;
      title: string;
      cost: number;
      prompt: string;
    };
    redeemed_at: string;
  };
  /** A hype train begins or goes on */
  'twitch:hype_train': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    level: number;
    total: number;
    top_contributions: {
      user_id: string;
      user_login: string;
      user_name: string;
      type: string;
      total: number;
    }[] | null;
    shared_train_participants?: unknown;
    is_shared_train?: boolean | null;
    type?: string | null;
    started_at: string;
    progress: number;
    goal: number;
    expires_at: string;
    all_time_high_level?: number;
    all_time_high_total?: number;
  };
  /** A hype train has ended */
  'twitch:hype_train_end': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    level: number;
    total: number;
    top_contributions: {
      user_id: string;
      user_login: string;
      user_name: string;
      type: string;
      total: number;
    }[] | null;
    shared_train_participants?: unknown;
    is_shared_train?: boolean | null;
    type?: string | null;
    started_at: string;
    ended_at: string;
    cooldown_ends_at: string;
  };
  /** A poll begins, or votes come in */
  'twitch:poll': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    title: string;
    choices: {
      id: string;
      title: string;
      votes?: number;
      channel_points_votes?: number;
      bits_votes?: number;
    }[];
    bits_voting: {
      is_enabled: boolean;
      amount_per_vote: number;
    };
    channel_points_voting: {
      is_enabled: boolean;
      amount_per_vote: number;
    };
    started_at: string;
    ends_at: string;
  };
  /** A poll has ended */
  'twitch:poll_end': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    title: string;
    choices: {
      id: string;
      title: string;
      votes?: number;
      channel_points_votes?: number;
      bits_votes?: number;
    }[];
    bits_voting: {
      is_enabled: boolean;
      amount_per_vote: number;
    };
    channel_points_voting: {
      is_enabled: boolean;
      amount_per_vote: number;
    };
    started_at: string;
    status: string;
    ended_at: string;
  };
  /** A poll was taken away */
  'twitch:poll_delete': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    title: string;
    choices: {
      id: string;
      title: string;
      votes?: number;
      channel_points_votes?: number;
      bits_votes?: number;
    }[];
    bits_voting: {
      is_enabled: boolean;
      amount_per_vote: number;
    };
    channel_points_voting: {
      is_enabled: boolean;
      amount_per_vote: number;
    };
    started_at: string;
    status: string;
    ended_at: string;
  };
  /** A prediction begins, or points are put in */
  'twitch:prediction': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    title: string;
    outcomes: {
      id: string;
      title: string;
      color: string;
      users?: number;
      channel_points?: number;
      top_predictors?: {
        user_id: string;
        user_login: string;
        user_name: string;
        channel_points_won: unknown;
        channel_points_used: number;
      }[] | null;
    }[];
    started_at: string;
    locks_at: string;
  };
  /** No more points can be put in */
  'twitch:prediction_lock': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    title: string;
    outcomes: {
      id: string;
      title: string;
      color: string;
      users?: number;
      channel_points?: number;
      top_predictors?: {
        user_id: string;
        user_login: string;
        user_name: string;
        channel_points_won: unknown;
        channel_points_used: number;
      }[] | null;
    }[];
    started_at: string;
    locked_at: string;
  };
  /** A prediction is resolved or canceled */
  'twitch:prediction_end': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    title: string;
    outcomes: {
      id: string;
      title: string;
      color: string;
      users?: number;
      channel_points?: number;
      top_predictors?: {
        user_id: string;
        user_login: string;
        user_name: string;
        channel_points_won: unknown;
        channel_points_used: number;
      }[] | null;
    }[];
    started_at: string;
    winning_outcome_id: string | null;
    status: string;
    ended_at: string;
  };
  /** A goal of the creator begins or comes nearer */
  'twitch:goal': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    type: string;
    description: string;
    current_amount: number;
    target_amount: number;
    started_at: string;
  };
  /** A goal has ended */
  'twitch:goal_end': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    type: string;
    description: string;
    current_amount: number;
    target_amount: number;
    started_at: string;
    is_achieved: boolean;
    ended_at: string;
  };
  /** An advertisement begins */
  'twitch:ad_break': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    requester_user_id: string;
    requester_user_login: string;
    requester_user_name: string;
    duration_seconds: number;
    is_automatic: boolean;
    started_at: string;
  };
  /** The channel goes live */
  'twitch:stream_online': {
    id: string;
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    type: string;
    started_at: string;
  };
  /** The channel is no longer live */
  'twitch:stream_offline': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
  };
  /** Title, category, language or labels changed */
  'twitch:stream_update': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    title: string;
    language: string;
    category_id: string;
    category_name: string;
    content_classification_labels?: unknown[];
  };
  /** Somebody writes in this chat for the first time since it is connected */
  'twitch:first_message': {
    broadcaster_user_id: string;
    broadcaster_user_login: string;
    broadcaster_user_name: string;
    chatter_user_id: string;
    chatter_user_login: string;
    chatter_user_name: string;
    message_id: string;
    message: {
      text: string;
      fragments: {
        type: string;
        text: string;
      }[];
    };
    color: string;
    badges: unknown[];
    message_type: string;
  };
  /** A video was published or changed */
  'youtube:subscribe': {
    channel_id: string;
    video_id: string | null;
    title?: string | null;
    published?: string | null;
    updated?: string | null;
  };
  /** Somebody becomes a member, or tells for how long they have been one */
  'youtube:member': {
    id: string;
    snippet: {
      type: string;
      liveChatId?: string;
      authorChannelId?: string;
      publishedAt: string;
      hasDisplayContent?: boolean;
      displayMessage?: string;
      newSponsorDetails?: {
        memberLevelName: string;
        isUpgrade?: boolean;
      };
    };
    authorDetails: {
      channelId: string;
      channelUrl?: string;
      displayName: string;
      profileImageUrl?: string;
      isVerified?: boolean;
      isChatOwner?: boolean;
      isChatSponsor?: boolean;
      isChatModerator?: boolean;
    };
  };
  /** A message was paid for */
  'youtube:superchat': {
    id: string;
    snippet: {
      type: string;
      liveChatId?: string;
      authorChannelId?: string;
      publishedAt: string;
      hasDisplayContent?: boolean;
      displayMessage?: string;
      superChatDetails: {
        amountMicros: number | string;
        currency: string;
        amountDisplayString: string;
        userComment?: string;
        tier: number;
      };
    };
    authorDetails: {
      channelId: string;
      channelUrl?: string;
      displayName: string;
      profileImageUrl?: string;
      isVerified?: boolean;
      isChatOwner?: boolean;
      isChatSponsor?: boolean;
      isChatModerator?: boolean;
    };
  };
  /** A sticker was paid for */
  'youtube:supersticker': {
    id: string;
    snippet: {
      type: string;
      liveChatId?: string;
      authorChannelId?: string;
      publishedAt: string;
      hasDisplayContent?: boolean;
      displayMessage?: string;
      superStickerDetails: {
        superStickerMetadata: {
          stickerId: string;
          altText: string;
          language?: string;
        };
        amountMicros: number | string;
        currency: string;
        amountDisplayString: string;
        tier: number;
      };
    };
    authorDetails: {
      channelId: string;
      channelUrl?: string;
      displayName: string;
      profileImageUrl?: string;
      isVerified?: boolean;
      isChatOwner?: boolean;
      isChatSponsor?: boolean;
      isChatModerator?: boolean;
    };
  };
  /** Memberships are given away */
  'youtube:gift_membership': {
    id: string;
    snippet: {
      type: string;
      liveChatId?: string;
      authorChannelId?: string;
      publishedAt: string;
      hasDisplayContent?: boolean;
      displayMessage?: string;
      membershipGiftingDetails: {
        giftMembershipsCount: number;
        giftMembershipsLevelName: string;
      };
    };
    authorDetails: {
      channelId: string;
      channelUrl?: string;
      displayName: string;
      profileImageUrl?: string;
      isVerified?: boolean;
      isChatOwner?: boolean;
      isChatSponsor?: boolean;
      isChatModerator?: boolean;
    };
  };
  /** Somebody was given a membership */
  'youtube:gift_membership_received': {
    id: string;
    snippet: {
      type: string;
      liveChatId?: string;
      authorChannelId?: string;
      publishedAt: string;
      hasDisplayContent?: boolean;
      displayMessage?: string;
      giftMembershipReceivedDetails: {
        memberLevelName: string;
        gifterChannelId: string;
        associatedMembershipGiftingMessageId: string;
      };
    };
    authorDetails: {
      channelId: string;
      channelUrl?: string;
      displayName: string;
      profileImageUrl?: string;
      isVerified?: boolean;
      isChatOwner?: boolean;
      isChatSponsor?: boolean;
      isChatModerator?: boolean;
    };
  };
  /** A poll of the live chat */
  'youtube:poll': {
    id: string;
    snippet: {
      type: string;
      liveChatId?: string;
      authorChannelId?: string;
      publishedAt: string;
      hasDisplayContent?: boolean;
      displayMessage?: string;
      pollDetails: {
        metadata: {
          questionText: string;
          status?: string;
          options: {
            optionText: string;
            tally?: string;
          }[];
        };
      };
    };
    authorDetails: {
      channelId: string;
      channelUrl?: string;
      displayName: string;
      profileImageUrl?: string;
      isVerified?: boolean;
      isChatOwner?: boolean;
      isChatSponsor?: boolean;
      isChatModerator?: boolean;
    };
  };
  /** Somebody follows the channel */
  'kick:follower': {
    broadcaster: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
    follower: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
  };
  /** Somebody subscribes, or subscribes again */
  'kick:subscribe': {
    broadcaster: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
    subscriber: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
    duration: number;
    created_at: string;
    expires_at: string;
  };
  /** Subscriptions are given away; an anonymous giver has no members */
  'kick:gift': {
    broadcaster: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
    gifter: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
    giftees: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    }[];
    created_at: string;
    expires_at: string;
  };
  /** The channel goes live */
  'kick:stream_online': {
    broadcaster: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
    is_live: boolean;
    title: string;
    started_at: string;
    ended_at: unknown;
  };
  /** The channel is no longer live */
  'kick:stream_offline': {
    broadcaster: {
      is_anonymous?: boolean | null;
      user_id: number | null;
      username: string | null;
      is_verified?: boolean | null;
      profile_picture?: string | null;
      channel_slug?: string | null;
      identity?: unknown;
    };
    is_live: boolean;
    title: string;
    started_at: string;
    ended_at: string;
  };
  /** Somebody subscribes, or gives subscriptions away */
  'trovo:subscribe': {
    type?: number | string;
    content?: string;
    sender_id?: number | string;
    nick_name?: string;
    user_name?: string;
    send_time?: number | string;
    message_id?: string;
  };
  /** Somebody casts a spell, which costs Mana or Elixir */
  'trovo:spell': {
    type?: number | string;
    content?: string;
    sender_id?: number | string;
    nick_name?: string;
    user_name?: string;
    send_time?: number | string;
    message_id?: string;
  };
  /** Somebody subscribes; the other word of Trovo’s workers */
  'trovo:subscriber': {
    type?: number | string;
    content?: string;
    sender_id?: number | string;
    nick_name?: string;
    user_name?: string;
    send_time?: number | string;
    message_id?: string;
  };
  /** Somebody follows the channel */
  'trovo:follower': {
    type?: number | string;
    content?: string;
    sender_id?: number | string;
    nick_name?: string;
    user_name?: string;
    send_time?: number | string;
    message_id?: string;
  };
  /** Another channel raids this one */
  'trovo:raid': {
    type?: number | string;
    content?: string;
    sender_id?: number | string;
    nick_name?: string;
    user_name?: string;
    send_time?: number | string;
    message_id?: string;
  };
  /** Another track or episode is played */
  'spotify:track': {
    item: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    } | null;
    is_playing: boolean;
    progress_ms: number | null;
    currently_playing_type: string;
    device: {
      id: string | null;
      name: string;
      type: string;
      volume_percent: number | null;
    } | null;
  };
  /** Playing goes on */
  'spotify:play': {
    item: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    } | null;
    is_playing: boolean;
    progress_ms: number | null;
    currently_playing_type: string;
    device: {
      id: string | null;
      name: string;
      type: string;
      volume_percent: number | null;
    } | null;
  };
  /** Playing is paused */
  'spotify:pause': {
    item: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    } | null;
    is_playing: boolean;
    progress_ms: number | null;
    currently_playing_type: string;
    device: {
      id: string | null;
      name: string;
      type: string;
      volume_percent: number | null;
    } | null;
  };
  /** A track was left before its end */
  'spotify:skip': {
    item: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    } | null;
    is_playing: boolean;
    progress_ms: number | null;
    currently_playing_type: string;
    device: {
      id: string | null;
      name: string;
      type: string;
      volume_percent: number | null;
    } | null;
    previous: {
      item: {
        type: string;
        id: string;
        name: string;
        artists: {
          id: string;
          name: string;
        }[];
        album: {
          id: string;
          name: string;
          images: {
            url: string;
            width: number;
            height: number;
          }[];
        };
        duration_ms: number;
        explicit: boolean;
        uri: string;
        url: string;
      } | null;
      progress_ms: number | null;
    } | null;
  };
  /** The volume was changed; `device` has the new one */
  'spotify:volume': {
    item: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    } | null;
    is_playing: boolean;
    progress_ms: number | null;
    currently_playing_type: string;
    device: {
      id: string | null;
      name: string;
      type: string;
      volume_percent: number | null;
    } | null;
    previous: {
      volume_percent: number | null;
    } | null;
  };
  /** Another device plays */
  'spotify:device': {
    item: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    } | null;
    is_playing: boolean;
    progress_ms: number | null;
    currently_playing_type: string;
    device: {
      id: string | null;
      name: string;
      type: string;
      volume_percent: number | null;
    } | null;
    previous: {
      id: string | null;
      name: string;
      type: string;
      volume_percent: number | null;
    } | null;
  };
  /** A track was put into the queue */
  'spotify:queue_add': {
    item: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    };
  };
  /** Tracks were put on a playlist */
  'spotify:playlist_add': {
    playlist: {
      id: string;
      name: string;
      uri: string;
    };
    items: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    }[];
  };
  /** Tracks were taken off a playlist */
  'spotify:playlist_remove': {
    playlist: {
      id: string;
      name: string;
      uri: string;
    };
    items: {
      type: string;
      id: string | null;
      name: string;
      artists: {
        id: string;
        name: string;
      }[];
      album: {
        id: string | null;
        name: string;
        images: {
          url: string;
          width: number;
          height: number;
        }[];
      } | null;
      duration_ms: number;
      explicit: boolean;
      uri: string;
      url: string | null;
    }[];
  };
  /** A playlist was made */
  'spotify:playlist_create': {
    playlist: {
      id: string;
      name: string;
      uri: string;
    };
    created_at?: string;
  };
  /** A playlist was renamed or described anew */
  'spotify:playlist_edit': {
    playlist: {
      id: string;
      name: string;
      uri: string;
    };
  };
  /** A playlist was deleted */
  'spotify:playlist_delete': {
    playlist: {
      id: string;
      name: string;
      uri: string;
    };
  };
  /** A tip was paid and may be shown */
  'streamelements:tip': {
    _id: string;
    channel?: string;
    donation: {
      user: {
        username: string;
      };
      message?: string;
      amount: number;
      currency: string;
      paymentMethod?: string;
    };
    provider?: string;
    status: string;
    approved: string;
    createdAt: string;
    updatedAt?: string;
    transactionId?: string;
  };
  /** Somebody joins the guild */
  'discord:member_join': {
    guild_id: string;
    user: {
      id: string;
      username?: string;
      global_name?: string | null;
      avatar?: unknown;
    };
    nick?: unknown;
    roles?: unknown[];
    joined_at?: string | null;
    premium_since?: unknown;
    pending?: boolean;
  };
  /** Somebody leaves the guild, by themselves or not */
  'discord:member_leave': {
    guild_id: string;
    user: {
      id: string;
      username?: string;
      global_name?: string | null;
      avatar?: unknown;
    };
  };
  /** Somebody begins to boost the guild */
  'discord:boost': {
    guild_id: string;
    user: {
      id: string;
      username?: string;
      global_name?: string | null;
      avatar?: unknown;
    };
    nick?: unknown;
    roles?: unknown[];
    joined_at?: string | null;
    premium_since?: string | null;
    pending?: boolean;
  };
  /** An order was made */
  'shopify:order': {
    id: number;
    admin_graphql_api_id?: string;
    name: string;
    created_at: string;
    updated_at?: string;
    currency: string;
    total_price: string;
    financial_status: string;
    test?: boolean;
    customer?: {
      id: number;
      first_name: string;
      last_name: string;
    } | null;
    line_items: {
      title: string;
      quantity: number;
      price: string;
    }[];
  };
  /** An order was paid */
  'shopify:order_paid': {
    id: number;
    admin_graphql_api_id?: string;
    name: string;
    created_at: string;
    updated_at?: string;
    currency: string;
    total_price: string;
    financial_status: string;
    test?: boolean;
    customer?: {
      id: number;
      first_name: string;
      last_name: string;
    } | null;
    line_items: {
      title: string;
      quantity: number;
      price: string;
    }[];
  };
  /** A product was made */
  'shopify:product': {
    id: number;
    title: string;
    vendor: string;
    status?: string;
    created_at: string | null;
    updated_at?: string | null;
    variants: {
      title: string;
      price: string;
    }[];
  };
  /** A channel of the account went live */
  'channel:online': {
    platform?: string;
    channel_id?: string;
    started_at?: string;
  };
  /** A channel of the account is no longer live */
  'channel:offline': {
    platform?: string;
    channel_id?: string;
    ended_at?: string;
  };
  /** What is played must not be */
  'copyright:blocked': {
    song_name?: string;
    artist?: string;
  };
  /** What is played may be claimed */
  'copyright:warning': {
    song_name?: string;
    artist?: string;
  };
  /** Nothing is claimed any more */
  'copyright:clear': {
    song_name?: string;
    artist?: string;
  };
  /** OBS was told to do something */
  'obs:action': {
    action?: string;
    scene?: string;
  };
  /** OBS is away */
  'obs:connection_lost': {
    at?: string;
  };
  /** OBS sends less than it should */
  'obs:low_bitrate': {
    bitrate_kbps?: number;
  };
  /** OBS drops frames */
  'obs:high_dropped_frames': {
    dropped_frames_percent?: number;
  };
  /** OBS is well again */
  'obs:recovery': {
    at?: string;
  };
  /** A broadcast began */
  'history:session_started': {
    session_id?: string;
  };
  /** A broadcast has new figures */
  'history:session_updated': {
    session_id?: string;
  };
  /** A sound is to be played */
  'sound:play': {
    sound_id?: string;
    volume?: number;
  };
  /** An overlay was changed */
  'overlay:update': {
    overlay_id?: string;
  };
  /** A widget was changed */
  'widget:update': {
    widget_instance_id?: string;
  };
  /** What an extension keeps was changed */
  'storage:update': {
    key?: string;
    value?: number;
  };
  /** An extension has another version */
  'extension:updated': {
    install_id?: string;
    version?: string;
  };
}

export type EventType = keyof EventPayloads;

/** The messages of each channel, by its name. */
export interface Channels {
  /** Changes of the board of ideas as a whole. */
  'ideas:list': Message<'event', string, Record<string, unknown>>;
  /** What an account's automations do. */
  [channel: `automations:${string}`]:
    | Message<'automation' | 'event', 'run:started', {
    type: string;
    automation_id?: string;
    reward_id?: string;
    run_id: string;
    status: 'pending' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'unknown' | 'expired' | 'cancelled';
    /** Of a step */
    node_id?: string;
  }>
    | Message<'automation' | 'event', 'run:step', {
    type: string;
    automation_id?: string;
    reward_id?: string;
    run_id: string;
    status: 'pending' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'unknown' | 'expired' | 'cancelled';
    /** Of a step */
    node_id?: string;
  }>
    | Message<'automation' | 'event', 'run:finished', {
    type: string;
    automation_id?: string;
    reward_id?: string;
    run_id: string;
    status: 'pending' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'unknown' | 'expired' | 'cancelled';
    /** Of a step */
    node_id?: string;
  }>
    | Message<'automation' | 'event', 'run:dropped', {
    type: string;
    count: number;
  }>
    | Message<'automation' | 'event', string, Record<string, unknown>>;
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
    | Message<'event', 'history:session_started', {
    session_id: string;
    id: string;
    /** The figures of a live session change */
    status: 'live' | 'finalized';
    /** `multi`: on several platforms */
    session_type: 'single' | 'multi';
    /** The first title */
    title: string | null;
    platforms: string[];
    categories: string[];
    started_at: string;
    ended_at: string | null;
    /** Gaps between streams included */
    duration_secs: number;
    peak_viewers: number | null;
    avg_viewers: number | null;
    hours_watched: number | null;
    total_messages: number | null;
    unique_chatters: number | null;
    new_followers: number | null;
    new_paid_subs: number | null;
    gifted_subs: number | null;
    emote_count: number | null;
    gif_count: number | null;
    followers_per_hour: number | null;
  }>
    | Message<'event', 'history:session_updated', {
    session_id: string;
    id: string;
    /** The figures of a live session change */
    status: 'live' | 'finalized';
    /** `multi`: on several platforms */
    session_type: 'single' | 'multi';
    /** The first title */
    title: string | null;
    platforms: string[];
    categories: string[];
    started_at: string;
    ended_at: string | null;
    /** Gaps between streams included */
    duration_secs: number;
    peak_viewers: number | null;
    avg_viewers: number | null;
    hours_watched: number | null;
    total_messages: number | null;
    unique_chatters: number | null;
    new_followers: number | null;
    new_paid_subs: number | null;
    gifted_subs: number | null;
    emote_count: number | null;
    gif_count: number | null;
    followers_per_hour: number | null;
  }>;
  /** Changes of one idea. */
  [channel: `ideas:${string}`]: Message<'event', string, Record<string, unknown>>;
  /** Which provider an account's login was assigned to; nothing else. */
  [channel: `login-assignments:${string}`]: Message<'event', string, {
    provider: string;
  }>;
  /** One overlay, and messages that its visible layers draw. Its own token or a shared link's opens it. */
  [channel: `overlay:${string}`]:
    | Message<'event', 'overlay:update', {
    overlay_id?: string;
    revision?: number;
    width?: number;
    height?: number;
    background?: string;
    /** The visible ones, in their order */
    layers?: OverlayLayer[];
    changed?: OverlayLayer[];
    /** Deleted or hidden layers */
    removed?: string[];
    /** Its sounds are on `sounds:<account_id>` */
    account_id?: string;
    /** Types of layers whose flags are off */
    undrawn?: string[];
    /** Of the account's channels: those in memory, and all in a message of their own once they are fetched */
    emotes?: PagePictures[];
    /** Signed links by the ids of files */
    assets?: Record<string, unknown>;
    labels?: {
      last_follower: string | null;
      last_tip: string | null;
      song: string | null;
    };
    /** Song that the player of the account plays */
    song?: Record<string, unknown> | null;
    /** The newest 20 events, newest first, where a layer lists events */
    recent?: DrawnEvent[];
    alerts?: {
      paused: boolean;
      muted: boolean;
    };
    [more: string]: unknown;
  }>
    | Message<'event', 'overlay:alerts', {
    action: 'pause' | 'resume' | 'mute' | 'unmute' | 'skip' | 'replay';
    paused: boolean;
    muted: boolean;
    /** Of `replay` alone */
    event: DrawnEvent | null;
  }>
    | Message<'event', string, Record<string, unknown>>;
  /** Who is on another channel that belongs to an account; whoever subscribes is present. */
  [channel: `presence:${string}`]:
    | Message<'event', 'presence:bootstrap', {
    connections: PresentConnection[];
    total: number;
  }>
    | Message<'event', 'presence:join', PresentConnection>
    | Message<'event', 'presence:leave', PresentConnection>;
  /** Numbers of one broadcast, for everybody. */
  [channel: `public-stats:${string}:${string}`]:
    | Message<'event', 'public-stats:bootstrap', Record<string, unknown>>
    | Message<'event', string, Record<string, unknown>>;
  /** Sounds to play now; any credential of the account listens, those of widgets and overlays included. */
  [channel: `sounds:${string}`]:
    | Message<'event', 'sound:play', {
    sound_id: string;
    /** Path of the audio, which needs no credential for an hour at least */
    url: string;
    /** 0 to 1 */
    volume: number;
    /** Null: every page */
    target: {
      type: 'widget' | 'overlay';
      id: string;
    } | null;
  }>
    | Message<'event', 'sound:stop', {
    sound_id: string;
    /** Null: every page */
    target: {
      type: 'widget' | 'overlay';
      id: string;
    } | null;
  }>
    | Message<'event', 'sound:list:updated', {
    action: 'created' | 'updated' | 'deleted';
    sound_id: string;
  }>;
  /** What an account is listening to, now and with each change. */
  [channel: `spotify:${string}`]: Message<'spotify:now-playing' | 'event', string, Record<string, unknown>>;
  /** What concerns one user whatever the account, such as their notifications; they alone listen. */
  [channel: `user:${string}`]: Message<'event', string, Record<string, unknown>>;
  /** One widget, and messages that it draws. Its own token opens it. */
  [channel: `widget:${string}`]:
    | Message<'event', 'widget:update', {
    widget_instance_id?: string;
    revision?: number;
    type?: string;
    config?: Record<string, unknown>;
    /** Its sounds are on `sounds:<account_id>` */
    account_id?: string;
    /** Types of layers whose flags are off */
    undrawn?: string[];
    /** Of the account's channels: those in memory, and all in a message of their own once they are fetched */
    emotes?: PagePictures[];
    /** Signed links by the ids of files */
    assets?: Record<string, unknown>;
    labels?: {
      last_follower: string | null;
      last_tip: string | null;
      song: string | null;
    };
    /** Song that the player of the account plays */
    song?: Record<string, unknown> | null;
    /** The newest 20 events, newest first, where a layer lists events */
    recent?: DrawnEvent[];
    alerts?: {
      paused: boolean;
      muted: boolean;
    };
    [more: string]: unknown;
  }>
    | Message<'event', 'overlay:alerts', {
    action: 'pause' | 'resume' | 'mute' | 'unmute' | 'skip' | 'replay';
    paused: boolean;
    muted: boolean;
    /** Of `replay` alone */
    event: DrawnEvent | null;
  }>
    | Message<'event', string, Record<string, unknown>>;
}

export type ChannelName = keyof Channels & string;

/** What a channel of this name delivers. */
export type MessageOf<Name extends ChannelName> = Channels[Name];

/** Channels that clients may broadcast to, given the permission. */
export type WritableChannel =
  | `automations:${string}`
  | `chat:${string}`
  | `events:${string}`;
