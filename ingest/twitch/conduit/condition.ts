import { isObject } from '../frame';
import { member, textOf } from '../../runtime/webhook/webhook';

export interface NamedSubscription {
  channel_id: string;
  /** {@link Subscription.name}. */
  name: string;
}

/** Channel of a subscription, and the subscription's name among those of the channel; null without a channel. */
export function namedBy(type: string, condition: unknown): NamedSubscription | null {
  if (!isObject(condition)) return null;
  const of = (name: string) => textOf(condition[name]) || null;
  if (type !== 'channel.raid') {
    const channel_id = of('broadcaster_user_id');
    return channel_id === null ? null : { channel_id, name: type };
  }
  const [to, from] = [of('to_broadcaster_user_id'), of('from_broadcaster_user_id')];
  if (to !== null) return { channel_id: to, name: 'channel.raid:to' };
  return from === null ? null : { channel_id: from, name: 'channel.raid:from' };
}

/** Channel and subscription name of a frame that arrived over a shard. */
export function namedByFrame(frame: unknown): NamedSubscription | null {
  const subscription = member(frame, 'payload', 'subscription');
  return namedBy(textOf(member(subscription, 'type')) ?? '', member(subscription, 'condition'));
}
