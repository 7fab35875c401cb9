/**
 * Begins the relay topics of messages that are not stored (see TransientSender). Alone it is the one topic of builds
 * before: `{"channel", "message"}`, `message` being the whole server message as text.
 */
export const LIVE_TOPIC = 'live';

/** A row of the outbox. */
export interface StoredMessage {
  /** Position in the outbox, in commit order within a shard and within a channel. */
  id: number;
  channel: string;
  /** Dense per channel, from 1. */
  seq: number;
  event_type: string;
  /** JSON text. */
  data: string;
  created_at: string;
  /** W3C traceparent of what led to it; null or absent when it was written without tracing. */
  trace?: string | null;
}

/** Content of a message that has an id. */
type Sent = Pick<StoredMessage, 'channel' | 'event_type' | 'data'>;

/**
 * The server message of a stored row as JSON text; `data` is passed on byte for byte. `type` is the family's own where
 * doc3 §6.3 gives one; `channel` and `event_type` are always there (rulings c30 to c32), and `id` so that a client can
 * resume.
 */
export function storedMessageText(type: string, id: string, message: Sent): string {
  return `{"type":${JSON.stringify(type)},${contentOf(id, message)}}`;
}

/** Like {@link storedMessageText}, of a message that the client missed before it resumed. */
export const missedMessageText = (type: string, id: string, message: Sent): string =>
  `{"type":${JSON.stringify(type)},"missed":true,${contentOf(id, message)}}`;

const contentOf = (id: string, { channel, event_type, data }: Sent): string =>
  `"id":"${id}","channel":${JSON.stringify(channel)},"event_type":${JSON.stringify(event_type)},"data":${data}`;

/** A client's broadcast as all subscribers see it (rulings c31, c32): `payload` is JSON text and already checked. */
export function broadcastText(channel: string, payload: string, parsed: unknown): string {
  const sent_type = typeof parsed === 'object' && parsed !== null ? (parsed as { type?: unknown }).type : undefined;
  const event_type = typeof sent_type === 'string' && sent_type.length > 0 ? sent_type : 'broadcast';
  return eventText(channel, event_type, payload);
}

/** A message that is not stored; `data` is JSON text. */
export function eventText(channel: string, event_type: string, data: string): string {
  return `{"type":"event","channel":${JSON.stringify(channel)},"event_type":${JSON.stringify(event_type)},"data":${data}}`;
}
