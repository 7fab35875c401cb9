import { z } from 'zod';
import { memberAt, parsedJson } from '../../lib/json/paths';
import { parseInstant } from '../../lib/time/instants';
import { PLATFORMS } from '../common/vendors';

/** A broadcast of a connected channel, as in `channel-status:<account_id>` and `channel:online`. */
export const ChannelTransition = z
  .object({
    type: z.enum(['channel:online', 'channel:offline']),
    platform: z.enum(PLATFORMS),
    channel_id: z.string().describe("The platform's id of the channel; empty where the platform did not say it"),
    broadcast_id: z.string().nullable().describe("The platform's id of the broadcast, where it gave one"),
    title: z.string().nullable(),
    category: z.string().nullable(),
    started_at: z.iso.datetime().nullable(),
    ended_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'ChannelTurn' });
export type ChannelTransition = z.output<typeof ChannelTransition>;

/** A broadcast's newest figures. */
export const BroadcastFigures = z
  .object({
    platform: z.enum(PLATFORMS),
    broadcast_id: z.string(),
    title: z.string().nullable(),
    category: z.string().nullable(),
    tags: z.array(z.string()),
    viewer_count: z.int(),
    follower_count: z.int().nullable().describe('Of the channel, where the platform tells'),
    sampled_at: z.iso.datetime(),
  })
  .meta({ id: 'BroadcastFigures' });

/** The WebSocket channel of what is on air on an account's channels. */
export const channelStatusChannel = (account_id: string): string => `channel-status:${account_id}`;

const TURN = /:stream_(online|offline)$/;
/** Longest id of a broadcast: it stands in an index. */
const MAX_ID = 500;
/** Whether records of this type mark the begin or the end of a broadcast. */
export const isTransition = (type: string): boolean => TURN.test(type);

/** A channel's going live or offline, in one form for all platforms. */
export interface StreamTransition {
  online: boolean;
  channel_id: string;
  /** Null where the platform names no broadcast: then it ends the current one. */
  broadcast_id: string | null;
  title: string | null;
  category: string | null;
  /** YouTube's id of the live chat. */
  live_chat_id: string | null;
  /** RFC 3339 UTC: when it began, or ended. */
  at: string;
}

/** Reads a record of a type that {@link isTransition} names; `at` is the record's own time. Never throws. */
export function readTransition({ type, raw, at }: { type: string; raw: string; at: string }): StreamTransition {
  const value = parsedJson(raw);
  const text = (...path: string[]): string | null => {
    const found = memberAt(value, path);
    if (typeof found === 'number') return String(found);
    // PostgreSQL stores no NUL and no lone surrogates.
    return typeof found === 'string' && found !== '' ? found.replaceAll('\0', '\ufffd').toWellFormed() : null;
  };
  const id = (...path: string[]): string | null => {
    const found = text(...path);
    return found === null || found.length > MAX_ID ? null : found;
  };
  const first = (...paths: string[][]) => paths.reduce<string | null>((one, path) => one ?? text(...path), null);
  const channel_id = first(
    ['broadcaster_user_id'],
    ['broadcaster', 'user_id'],
    ['snippet', 'channelId'],
    ['channel_id'],
  );
  const began = first(['started_at'], ['snippet', 'actualStartTime']);
  return {
    online: type.endsWith('online'),
    channel_id: channel_id ?? '',
    broadcast_id: id('id') ?? id('broadcast_id') ?? broadcastIdOf(channel_id, began),
    title: first(['title'], ['snippet', 'title'], ['live_title']),
    category: first(['category', 'name'], ['category_name']),
    live_chat_id: id('snippet', 'liveChatId'),
    at,
  };
}

/** For platforms that give a broadcast no id: its channel and when it began, in whole seconds. */
export function broadcastIdOf(channel_id: string | null, started_at: string | null): string | null {
  const began = Date.parse(parseInstant(started_at ?? '') ?? '');
  // A stream that is not there begins in the year 1, or in 1970.
  return channel_id === null || !(began > 1e12) ? null : `${channel_id}-${Math.floor(began / 1000)}`;
}
