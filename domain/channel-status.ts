import { z } from 'zod';
import type { Json } from '../kernel/json';
import { parseInstant } from './instants';
import { PLATFORMS } from './vendors';

/** A broadcast of a connected channel, as `channel-status:<account_id>` and `channel:online` tell of it. */
export const ChannelTurn = z
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
export type ChannelTurn = z.output<typeof ChannelTurn>;

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
/** Whether records of this type say that a channel goes live or is no longer live. */
export const isTurn = (type: string): boolean => TURN.test(type);

/** A channel's going live or offline, in one form for all platforms. */
export interface StreamTurn {
  online: boolean;
  channel_id: string;
  /** Null where the platform tells of none: then it ends whatever was on air. */
  broadcast_id: string | null;
  title: string | null;
  category: string | null;
  /** YouTube's id of the live chat. */
  live_chat_id: string | null;
  /** RFC 3339 UTC: when it began, or ended. */
  at: string;
}

/** Reads a record of a type that {@link isTurn} names; `at` is the record's own time. Never throws. */
export function readTurn({ type, raw, at }: { type: string; raw: string; at: string }): StreamTurn {
  const value = parsed(raw);
  const text = (...path: string[]): string | null => {
    const found = memberAt(value, path);
    if (typeof found === 'number') return String(found);
    // What PostgreSQL keeps.
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

function parsed(raw: string): Json {
  try {
    return JSON.parse(raw) as Json;
  } catch {
    return null;
  }
}

function memberAt(value: Json, path: readonly string[]): Json | undefined {
  let at: Json | undefined = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || Array.isArray(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}
