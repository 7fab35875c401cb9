import { fixture } from './webhooks';

/** When the frames that bring no metadata of their own were sent, and when all of them arrive. */
export const SENT_AT = '2026-11-21T10:00:00.5Z';

interface Payload {
  subscription: { type: string };
  event?: Record<string, unknown>;
}

/**
 * A fixture as the frame of a socket: some are whole frames, some their payload, some the event alone. Of these the
 * file's name says the type.
 */
export function twitchFrame(file: string, text = fixture('twitch', file).toString()): string {
  if (file.endsWith('.ws.json')) return text;
  if (file.endsWith('.body.json')) return frameOf((JSON.parse(text) as Payload).subscription.type, text);
  const type = file.replace(/(?:\.[a-z0-9_]+)?(?:\.partial)?\.event\.json$/, '').replace(/\.(?:timeout|cheer)$/, '');
  return frameOf(
    TYPES.find((one) => type.startsWith(one)) ?? type,
    `{"subscription":{"type":"${type}"},"event":${text}}`,
  );
}

/** Types that their fixtures name with more behind them. */
const TYPES = [
  'channel.chat.message_delete',
  'channel.chat.message',
  'channel.chat.notification',
  'channel.moderate',
  'channel.channel_points_custom_reward_redemption.add',
  'channel.suspicious_user.message',
  'channel.suspicious_user.update',
  'automod.message.update',
  'automod.message.hold',
];

function frameOf(subscription_type: string, payload: string): string {
  const metadata = { message_id: 'm-1', message_type: 'notification', message_timestamp: SENT_AT, subscription_type };
  return `{"metadata":${JSON.stringify(metadata)},"payload":${payload}}`;
}

/** The channel that a frame is about. */
export function channelOf(frame: string): string {
  const { payload } = JSON.parse(frame) as { payload: Payload };
  const { broadcaster_user_id, to_broadcaster_user_id } = payload.event ?? {};
  return String(broadcaster_user_id ?? to_broadcaster_user_id ?? '1337');
}
