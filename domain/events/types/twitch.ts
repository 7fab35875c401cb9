import { CHANNEL, MODERATOR, VIEWER } from './people';
import { after, AT, type EventType, type Example, typesOf, WRITTEN } from './type';

const twitch = typesOf('twitch');
const names = (prefix: string): string[] => ['id', 'login', 'name'].map((part) => `${prefix}user_${part}`);
const ANONYMOUS = { nullable: names('') } as const;
const OF_TRAIN = ['shared_train_participants', 'is_shared_train', 'type'];

/** A notification of the chat, which subscriptions are taken from. */
const notification = (notice_type: string, said: string, text: string, details: Example): Example => ({
  ...CHANNEL,
  chatter_user_id: VIEWER.user_id,
  chatter_user_login: VIEWER.user_login,
  chatter_user_name: VIEWER.user_name,
  chatter_is_anonymous: false,
  color: '#1E90FF',
  badges: [{ set_id: 'subscriber', id: '6', info: '8' }],
  system_message: said,
  message_id: '101ab672-fcde-4d71-8011-ac2859786cea',
  message: { text, fragments: text === '' ? [] : [{ type: 'text', text }] },
  notice_type,
  ...details,
});
const NOTIFIED = {
  nullable: names('chatter_'),
  optional: ['system_message', 'color', 'badges', 'message.fragments', 'chatter_user_name', 'broadcaster_user_name'],
};

const train = {
  id: '1b0AsbInCHZW2SQFQkCzqN07Ib2',
  ...CHANNEL,
  level: 2,
  total: 2_400,
  top_contributions: [{ ...VIEWER, type: 'bits', total: 1_500 }],
  shared_train_participants: null,
  is_shared_train: false,
  type: 'regular',
  started_at: AT,
};
const choices = [
  { id: '123', title: 'The cave', votes: 84, channel_points_votes: 20, bits_votes: 0 },
  { id: '124', title: 'The tower', votes: 56, channel_points_votes: 6, bits_votes: 0 },
];
const poll = {
  id: '1243456',
  ...CHANNEL,
  title: 'Where do we go?',
  choices,
  bits_voting: { is_enabled: false, amount_per_vote: 0 },
  channel_points_voting: { is_enabled: true, amount_per_vote: 50 },
  started_at: AT,
};
const POLL = { optional: ['choices[].votes', 'choices[].channel_points_votes', 'choices[].bits_votes'] };
const outcomes = [
  {
    id: '12345',
    title: 'Yes',
    color: 'blue',
    users: 12,
    channel_points: 15_000,
    top_predictors: [{ ...VIEWER, channel_points_won: null, channel_points_used: 500 }],
  },
  { id: '22435', title: 'No', color: 'pink', users: 3, channel_points: 2_200, top_predictors: [] },
];
const prediction = { id: '1243457', ...CHANNEL, title: 'Is this the last try?', outcomes, started_at: AT };
const PREDICTION = {
  optional: ['outcomes[].users', 'outcomes[].channel_points', 'outcomes[].top_predictors'],
  nullable: ['outcomes[].top_predictors', 'outcomes[].top_predictors[].channel_points_won'],
};
const goal = {
  id: '12345-cool-event',
  ...CHANNEL,
  type: 'subscription',
  description: 'A new chair',
  current_amount: 100,
  target_amount: 220,
  started_at: AT,
};
const moderated = { ...CHANNEL, ...MODERATOR };
const message = {
  ...CHANNEL,
  chatter_user_id: VIEWER.user_id,
  chatter_user_login: VIEWER.user_login,
  chatter_user_name: VIEWER.user_name,
  message_id: 'cc106a89-1814-919d-454c-f4f2f970aae7',
  message: { text: 'Hello everybody!', fragments: [{ type: 'text', text: 'Hello everybody!' }] },
  color: '#1E90FF',
  badges: [],
  message_type: 'user_intro',
};

/** Twitch's events: `raw` is the `event` of EventSub's notification. Source: spec doc3 §6.2. */
export const TWITCH: readonly EventType[] = [
  twitch('follower', 'Somebody follows the channel', { ...VIEWER, ...CHANNEL, followed_at: AT }),
  twitch(
    'subscribe',
    'Somebody subscribes for the first time',
    notification('sub', 'Ada_L subscribed at Tier 1.', '', {
      sub: { sub_tier: '1000', is_prime: false, duration_months: 1 },
    }),
    NOTIFIED,
  ),
  twitch(
    'gift_sub',
    'Subscriptions are given away; stored as `twitch:gift`',
    notification('sub_gift', 'Ada_L gifted a Tier 1 sub to Grace_H!', '', {
      sub_gift: {
        duration_months: 1,
        cumulative_total: 3,
        recipient_user_id: '777',
        recipient_user_login: 'grace_h',
        recipient_user_name: 'Grace_H',
        sub_tier: '1000',
        community_gift_id: null,
      },
    }),
    { ...NOTIFIED, delivered: 'live' },
  ),
  twitch(
    'gift',
    'Subscriptions are given away: one to somebody (`sub_gift`), or several to the community (`community_sub_gift`)',
    notification('community_sub_gift', 'Ada_L is gifting 5 Tier 1 Subs to the community!', '', {
      community_sub_gift: { id: '12111455614691086753', total: 5, sub_tier: '1000', cumulative_total: 12 },
    }),
    {
      ...WRITTEN,
      nullable: [...NOTIFIED.nullable, 'community_sub_gift', 'community_sub_gift.cumulative_total'],
      optional: [...NOTIFIED.optional, 'community_sub_gift', 'community_sub_gift.cumulative_total'],
    },
  ),
  twitch(
    'resub',
    'Somebody tells that they subscribed again',
    notification('resub', "Ada_L subscribed at Tier 1. They've subscribed for 8 months!", 'Eight months, thank you!', {
      resub: {
        cumulative_months: 8,
        duration_months: 1,
        streak_months: 3,
        sub_tier: '1000',
        is_prime: false,
        is_gift: false,
        gifter_is_anonymous: null,
        gifter_user_id: null,
        gifter_user_login: null,
        gifter_user_name: null,
      },
    }),
    {
      nullable: [
        ...NOTIFIED.nullable,
        ...['streak_months', 'gifter_is_anonymous', ...names('gifter_')].map((name) => `resub.${name}`),
      ],
      optional: [
        ...NOTIFIED.optional,
        ...['streak_months', 'is_prime', 'gifter_is_anonymous', ...names('gifter_')].map((name) => `resub.${name}`),
      ],
    },
  ),
  twitch(
    'gift_upgrade',
    'Somebody goes on paying for a subscription that was given to them',
    notification('gift_paid_upgrade', 'Ada_L is continuing the Gift Sub they got from Grace_H!', '', {
      gift_paid_upgrade: {
        gifter_is_anonymous: false,
        gifter_user_id: '777',
        gifter_user_login: 'grace_h',
        gifter_user_name: 'Grace_H',
      },
    }),
    {
      ...WRITTEN,
      nullable: [...NOTIFIED.nullable, ...names('gifter_').map((name) => `gift_paid_upgrade.${name}`)],
      optional: [...NOTIFIED.optional, ...names('gifter_').map((name) => `gift_paid_upgrade.${name}`)],
    },
  ),
  twitch(
    'prime_upgrade',
    'Somebody goes on paying for what was a Prime subscription',
    notification('prime_paid_upgrade', 'Ada_L converted from a Prime sub to a Tier 1 sub!', '', {
      prime_paid_upgrade: { sub_tier: '1000' },
    }),
    { ...WRITTEN, ...NOTIFIED },
  ),
  twitch(
    'pay_it_forward',
    'Somebody who was given a subscription gives one on',
    notification('pay_it_forward', 'Ada_L is paying forward the Gift they got from Grace_H!', '', {
      pay_it_forward: {
        gifter_is_anonymous: false,
        gifter_user_id: '777',
        gifter_user_login: 'grace_h',
        gifter_user_name: 'Grace_H',
        recipient_user_id: '778',
        recipient_user_login: 'alan_t',
        recipient_user_name: 'Alan_T',
      },
    }),
    {
      ...WRITTEN,
      nullable: [
        ...NOTIFIED.nullable,
        ...[...names('gifter_'), ...names('recipient_')].map((n) => `pay_it_forward.${n}`),
      ],
      optional: [...NOTIFIED.optional, ...names('recipient_').map((name) => `pay_it_forward.${name}`)],
    },
  ),
  twitch(
    'bits_badge',
    'Somebody earns the badge of a tier of Bits',
    notification('bits_badge_tier', 'bits badge tier notification', 'A thousand at last', {
      bits_badge_tier: { tier: 1_000 },
    }),
    { ...WRITTEN, ...NOTIFIED },
  ),
  twitch(
    'watch_streak',
    'Somebody watched several broadcasts in a row; `message` is what they said to it',
    notification('watch_streak', 'Ada_L watched 25 consecutive streams this month!', 'hello', {
      watch_streak: { streak_count: 25, channel_points_awarded: 450 },
    }),
    { ...WRITTEN, ...NOTIFIED },
  ),
  twitch(
    'cheer',
    'Somebody cheers with Bits',
    { is_anonymous: false, ...VIEWER, ...CHANNEL, message: 'Cheer100 well played', bits: 100 },
    ANONYMOUS,
  ),
  twitch('raid', 'Another channel raids this one', {
    from_broadcaster_user_id: '4243',
    from_broadcaster_user_login: 'grace_h',
    from_broadcaster_user_name: 'Grace_H',
    to_broadcaster_user_id: CHANNEL.broadcaster_user_id,
    to_broadcaster_user_login: CHANNEL.broadcaster_user_login,
    to_broadcaster_user_name: CHANNEL.broadcaster_user_name,
    viewers: 214,
  }),
  twitch(
    'raid_done',
    'This channel’s raid has arrived at another one',
    {
      from_broadcaster_user_id: CHANNEL.broadcaster_user_id,
      from_broadcaster_user_login: CHANNEL.broadcaster_user_login,
      from_broadcaster_user_name: CHANNEL.broadcaster_user_name,
      to_broadcaster_user_id: '4243',
      to_broadcaster_user_login: 'grace_h',
      to_broadcaster_user_name: 'Grace_H',
      viewers: 96,
    },
    WRITTEN,
  ),
  twitch(
    'raid_out',
    'A raid of another channel is prepared',
    {
      ...moderated,
      action: 'raid',
      raid: { user_id: '4243', user_login: 'grace_h', user_name: 'Grace_H', viewer_count: 96 },
    },
    WRITTEN,
  ),
  twitch(
    'unraid',
    'A raid that was prepared is called off',
    { ...moderated, action: 'unraid', unraid: { user_id: '4243', user_login: 'grace_h', user_name: 'Grace_H' } },
    WRITTEN,
  ),
  twitch('reward', 'Somebody redeems a reward of channel points', {
    id: '17fa2df1-ad76-4804-bfa5-a40ef63efe63',
    ...CHANNEL,
    ...VIEWER,
    user_input: 'Do a barrel roll',
    status: 'unfulfilled',
    reward: {
      id: '92af127c-7326-4483-a52b-b0da0be61c01',
      title: 'Choose a stunt',
      cost: 500,
      prompt: 'Which one?',
    },
    redeemed_at: AT,
  }),
  twitch(
    'hype_train',
    'A hype train begins or goes on',
    {
      ...train,
      progress: 600,
      goal: 1_800,
      expires_at: after(5),
      all_time_high_level: 4,
      all_time_high_total: 12_000,
    },
    {
      nullable: [...OF_TRAIN, 'top_contributions'],
      optional: [...OF_TRAIN, 'all_time_high_level', 'all_time_high_total'],
    },
  ),
  twitch(
    'hype_train_end',
    'A hype train has ended',
    { ...train, ended_at: after(12), cooldown_ends_at: after(72) },
    { nullable: [...OF_TRAIN, 'top_contributions'], optional: OF_TRAIN },
  ),
  twitch('poll', 'A poll begins, or votes come in', { ...poll, ends_at: after(3) }, POLL),
  twitch('poll_end', 'A poll has ended', { ...poll, status: 'completed', ended_at: after(3) }, POLL),
  twitch(
    'poll_delete',
    'A poll was taken away',
    { ...poll, status: 'archived', ended_at: after(3) },
    { ...POLL, ...WRITTEN },
  ),
  twitch('prediction', 'A prediction begins, or points are put in', { ...prediction, locks_at: after(5) }, PREDICTION),
  twitch('prediction_lock', 'No more points can be put in', { ...prediction, locked_at: after(5) }, PREDICTION),
  twitch(
    'prediction_end',
    'A prediction is resolved or canceled',
    { ...prediction, winning_outcome_id: '12345', status: 'resolved', ended_at: after(20) },
    { ...PREDICTION, nullable: [...PREDICTION.nullable, 'winning_outcome_id'] },
  ),
  twitch('goal', 'A goal of the creator begins or comes nearer', goal),
  twitch('goal_end', 'A goal has ended', { ...goal, is_achieved: true, current_amount: 220, ended_at: after(600) }),
  twitch('ad_break', 'An advertisement begins', {
    ...CHANNEL,
    requester_user_id: CHANNEL.broadcaster_user_id,
    requester_user_login: CHANNEL.broadcaster_user_login,
    requester_user_name: CHANNEL.broadcaster_user_name,
    duration_seconds: 60,
    is_automatic: false,
    started_at: AT,
  }),
  twitch(
    'ban',
    'Somebody is banned or timed out; told by the chat (`chat:clear_user`), not in the event log',
    {
      ...VIEWER,
      ...moderated,
      reason: 'Spam',
      banned_at: AT,
      ends_at: after(10),
      is_permanent: false,
    },
    { delivered: 'chat', nullable: ['ends_at'] },
  ),
  twitch(
    'unban',
    'A ban or timeout is lifted; told by the chat, not in the event log',
    { ...VIEWER, ...moderated },
    { delivered: 'chat' },
  ),
  twitch('stream_online', 'The channel goes live', { id: '40952121085', ...CHANNEL, type: 'live', started_at: AT }),
  twitch('stream_offline', 'The channel is no longer live', { ...CHANNEL }),
  twitch(
    'stream_update',
    'Title, category, language or labels changed',
    {
      ...CHANNEL,
      title: 'The last boss, really',
      language: 'en',
      category_id: '509658',
      category_name: 'Just Chatting',
      content_classification_labels: [],
    },
    { optional: ['content_classification_labels'] },
  ),
  twitch('first_message', 'Somebody writes in this chat for the first time since it is connected', message, WRITTEN),
];
