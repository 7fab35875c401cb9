import { idText } from '../runtime/webhook/webhook';
import type { Members } from './frame';
import { stateId } from './looks/catch-up';

/**
 * Members that identify an event, by type. Twitch's message id differs for each session that receives the event, so
 * that these members alone make an event of two sessions count once.
 */
const IDENTITIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['channel.chat.message', ['message_id']],
  ['channel.chat.notification', ['message_id']],
  ['channel.chat.message_delete', ['message_id']],
  ['channel.follow', ['user_id', 'followed_at']],
  ['channel.channel_points_custom_reward_redemption.add', ['id']],
  ['channel.ban', ['user_id', 'banned_at']],
  ['channel.ad_break.begin', ['started_at']],
  ['stream.online', ['id']],
  ['channel.hype_train.begin', ['id']],
  ['channel.hype_train.end', ['id']],
  ['channel.poll.begin', ['id']],
  ['channel.prediction.begin', ['id']],
  ['channel.prediction.lock', ['id']],
  ['channel.prediction.end', ['id']],
  ['channel.goal.begin', ['id']],
  ['channel.goal.end', ['id']],
]);

/** Twitch's own id of an event, equal in every session; null where the event has none. */
export function eventId(type: string, event: Members): string | null {
  const members = IDENTITIES.get(type);
  if (members === undefined) return null;
  const values: string[] = [];
  for (const name of members) {
    const value = idText(event[name]);
    if (value === null) return null;
    values.push(value);
  }
  return stateId(type, values.join(':'));
}
