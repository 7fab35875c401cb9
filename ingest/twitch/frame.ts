import { memberText } from '../../lib/json/members';
import { idText, member } from '../runtime/webhook/webhook';
import type { Received } from '../runtime/connection/adapter';
import { readJson, storableJson } from '../runtime/parse/text';

/** An object with unknown members. */
export type Members = Readonly<Record<string, unknown>>;

/** A parsed notification of EventSub. */
export interface Notification {
  /** Of the message, or the id that both holders of a handover give to its event. */
  message_id: string;
  /** As Twitch wrote it. */
  timestamp: unknown;
  /** `channel.follow`. */
  type: string;
  event: Members;
  /** The event as JSON text, digit for digit. */
  raw: string;
  /** True for an event that Lumio inferred from a look at Twitch's API. */
  is_look: boolean;
}

export type FrameReading =
  | { kind: 'notification'; notification: Notification }
  | { kind: 'other'; message_type: string }
  | { kind: 'bad'; reason: string; detail: string };

/** Member of a frame's metadata: true for an event that Lumio inferred from a look at Twitch's API. */
export const LOOK = 'is_look';

/** Reads a frame of an EventSub socket (vendors' protocol: `metadata` and `payload`). */
export function readFrame({ text, value, shared_id }: Pick<Received, 'text' | 'value' | 'shared_id'>): FrameReading {
  const stored = storableJson(text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text);
  const reading = value === undefined || stored !== text ? readJson(stored) : ({ ok: true, value } as const);
  if (!reading.ok) return { kind: 'bad', reason: reading.reason, detail: reading.detail };
  const { value: frame } = reading;
  const message_type = idText(member(frame, 'metadata', 'message_type'));
  if (message_type === null) return bad('metadata.message_type is missing');
  if (message_type !== 'notification') return { kind: 'other', message_type };
  const message_id = idText(member(frame, 'metadata', 'message_id'));
  if (message_id === null) return bad('metadata.message_id is missing');
  const subscription = member(frame, 'payload', 'subscription');
  const type = idText(member(frame, 'metadata', 'subscription_type')) ?? idText(member(subscription, 'type'));
  if (type === null) return bad('metadata.subscription_type is missing');
  const event = member(frame, 'payload', 'event');
  if (!isObject(event)) return bad('payload.event is missing');
  const raw = memberText(stored, ['payload', 'event']);
  if (raw === undefined) return bad('payload.event is missing');
  const timestamp = member(frame, 'metadata', 'message_timestamp');
  const is_look = member(frame, 'metadata', LOOK) === true;
  const notification = { message_id: shared_id ?? message_id, timestamp, type, event, raw, is_look };
  return { kind: 'notification', notification };
}

const bad = (detail: string): FrameReading => ({ kind: 'bad', reason: 'bad_payload', detail });

export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Ends of the authorisation as a whole; other ends are of one subscription. */
export const REVOKED: ReadonlySet<string> = new Set(['authorization_revoked', 'user_removed']);
