import { isWithinJsonBounds } from '../../../lib/json/bounds';
import { LIMITS } from './limits';

/** Error codes of the socket. Source: spec doc3 §4.1, "Error codes". */
export type SocketErrorCode =
  | 'UNAUTHORIZED'
  | 'FEATURE_DISABLED'
  | 'TOKEN_REVOKED'
  | 'TOKEN_EXPIRED'
  | 'SUBSCRIBE_FAILED'
  | 'CHANNEL_DROPPED'
  | 'INVALID_FORMAT'
  | 'MESSAGE_TOO_LARGE';

export const ERROR_TEXTS: Readonly<Record<SocketErrorCode, string>> = {
  UNAUTHORIZED: 'Not authorized for this channel',
  FEATURE_DISABLED: 'Feature not enabled',
  TOKEN_REVOKED: 'The token was revoked',
  TOKEN_EXPIRED: 'The token has expired',
  SUBSCRIBE_FAILED: 'The subscription could not be registered',
  CHANNEL_DROPPED: 'The connection fell behind on this channel; subscribe again',
  INVALID_FORMAT: 'Not a valid message',
  MESSAGE_TOO_LARGE: 'Messages are limited to 64 KiB',
};

export type ClientMessage =
  | { type: 'subscribe'; channel: string; since: string | null }
  | { type: 'unsubscribe'; channel: string }
  | { type: 'broadcast'; channel: string; payload: string }
  | { type: 'ping' };

/**
 * A client message, or null when it is not JSON, exceeds `LIMITS.message_bounds` or has no shape that doc3 §4.1 knows.
 * Unknown members are ignored.
 */
export function parseClientMessage(text: string): ClientMessage | null {
  if (!isWithinJsonBounds(text, LIMITS.message_bounds)) return null;
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return null;
  const { type, channel, payload, since } = message as Record<string, unknown>;
  if (type === 'ping') return { type };
  if (typeof channel !== 'string') return null;
  if (type === 'unsubscribe') return { type, channel };
  if (type === 'broadcast') return typeof payload === 'string' ? { type, channel, payload } : null;
  if (type !== 'subscribe' || (since !== undefined && since !== null && typeof since !== 'string')) return null;
  return { type, channel, since: since ?? null };
}

export const PONG = '{"type":"pong"}';

export function welcomeText(session_id: string, server_version: string): string {
  return JSON.stringify({ type: 'welcome', session_id, server_version });
}

/** `recovered` only in answer to `since`: whether all that was missed follows. */
export function subscribedText(channel: string, id: string, recovered: boolean | null): string {
  return JSON.stringify({ type: 'subscribed', channel, id, ...(recovered === null ? {} : { recovered }) });
}

/** A name that is longer than any channel's is not repeated whole. */
export function unsubscribedText(channel: string): string {
  return JSON.stringify({ type: 'unsubscribed', channel: channel.slice(0, LIMITS.channel_name) });
}

/** Text of an error; `channel` is a member besides the spec's, which names the channel of the error. */
export function errorText(code: SocketErrorCode, channel?: string, message: string = ERROR_TEXTS[code]): string {
  return JSON.stringify({
    type: 'error',
    message,
    code,
    ...(channel === undefined ? {} : { channel: channel.slice(0, LIMITS.channel_name) }),
  });
}
