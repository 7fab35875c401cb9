import type { Members } from './frame';

/** Mapping of an event type to the event log. */
export interface Stored {
  /** Without the vendor: `follower`. */
  type: string;
  /** Member with the subject's id; absent where the event has no subject. */
  person?: string;
  /** Members with the time of the event, best first; else the message's own time counts. */
  times?: readonly string[];
}

type Mapping = Stored | ((event: Members, channel_id: string) => Stored | null);

const raid: Mapping = (event, channel_id) => {
  if (event['to_broadcaster_user_id'] === channel_id) return { type: 'raid', person: 'from_broadcaster_user_id' };
  if (event['from_broadcaster_user_id'] === channel_id) return { type: 'raid_done', person: 'to_broadcaster_user_id' };
  return null;
};

/** An archived poll is over, and no longer shown. */
const pollEnd: Mapping = ({ status }) => ({
  type: status === 'archived' ? 'poll_delete' : 'poll_end',
  times: ['ended_at'],
});

/** Types of EventSub whose events go to the event log (spec doc3 §6.2, §6.4). */
export const STORED: ReadonlyMap<string, Mapping> = new Map<string, Mapping>([
  ['channel.follow', { type: 'follower', person: 'user_id', times: ['followed_at'] }],
  ['channel.cheer', { type: 'cheer', person: 'user_id' }],
  ['channel.raid', raid],
  [
    'channel.channel_points_custom_reward_redemption.add',
    { type: 'reward', person: 'user_id', times: ['redeemed_at'] },
  ],
  ['stream.online', { type: 'stream_online', times: ['started_at'] }],
  ['stream.offline', { type: 'stream_offline' }],
  ['channel.update', { type: 'stream_update' }],
  ['channel.hype_train.begin', { type: 'hype_train' }],
  ['channel.hype_train.progress', { type: 'hype_train' }],
  ['channel.hype_train.end', { type: 'hype_train_end', times: ['ended_at'] }],
  ['channel.poll.begin', { type: 'poll' }],
  ['channel.poll.progress', { type: 'poll' }],
  ['channel.poll.end', pollEnd],
  ['channel.prediction.begin', { type: 'prediction' }],
  ['channel.prediction.progress', { type: 'prediction' }],
  ['channel.prediction.lock', { type: 'prediction_lock', times: ['locked_at'] }],
  ['channel.prediction.end', { type: 'prediction_end', times: ['ended_at'] }],
  ['channel.goal.begin', { type: 'goal' }],
  ['channel.goal.progress', { type: 'goal' }],
  ['channel.goal.end', { type: 'goal_end', times: ['ended_at'] }],
  ['channel.ad_break.begin', { type: 'ad_break', times: ['started_at'] }],
]);

/**
 * Notices of the chat that go to the event log: subscriptions are taken from here alone, because their own types report
 * the same ones again.
 */
export const NOTICES: ReadonlyMap<string, string> = new Map([
  ['sub', 'subscribe'],
  ['resub', 'resub'],
  ['sub_gift', 'gift'],
  ['community_sub_gift', 'gift'],
  ['gift_paid_upgrade', 'gift_upgrade'],
  ['prime_paid_upgrade', 'prime_upgrade'],
  ['pay_it_forward', 'pay_it_forward'],
  ['bits_badge_tier', 'bits_badge'],
  ['watch_streak', 'watch_streak'],
]);

/** Notices of {@link NOTICES} with which a viewer writes something. */
export const NOTICES_WITH_TEXT: ReadonlySet<string> = new Set(['resub', 'watch_streak']);

/** Notices that event types of their own report. */
export const NOTICES_TOLD_ELSEWHERE: ReadonlySet<string> = new Set(['raid', 'unraid']);

/** Acts of moderators that go to the event log. */
export const MODERATED: ReadonlyMap<string, Stored> = new Map([
  ['raid', { type: 'raid_out' }],
  ['unraid', { type: 'unraid' }],
]);
