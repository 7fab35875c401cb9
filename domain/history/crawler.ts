import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';
import { PLATFORMS, type Platform } from '../common/vendors';

const platform = z.enum(PLATFORMS);
const CHANNEL = { platform, channel: z.string(), changed_at: instant() };
const OF_CHANNEL = { audit: { target: ['crawled_channel', 'channel'], by: ['platform', 'channel'] } } as const;

/** Changes of the crawler's scope, watched channels and opt-outs. Source: spec doc1 §7. */
export const CRAWLER_EVENTS = events({
  'crawler:scope_changed': event(
    { crawler_id: z.literal('crawler'), enabled: z.boolean(), platforms: z.array(platform), changed_at: instant() },
    { audit: { target: ['crawler', 'crawler_id'] } },
  ),
  'crawler:channel_watched': event({ ...CHANNEL, entry_id: z.uuid() }, OF_CHANNEL),
  'crawler:channel_unwatched': event({ ...CHANNEL, entry_id: z.uuid() }, OF_CHANNEL),
  'crawler:channel_opted_out': event(CHANNEL, OF_CHANNEL),
  'crawler:channel_opted_in': event(CHANNEL, OF_CHANNEL),
});
export type CrawlerEvent = EventOf<typeof CRAWLER_EVENTS>;

interface Channel {
  platform: Platform;
  channel: string;
}
export type CrawlerCommand = { now: string } & (
  | { type: 'crawler:change_scope'; enabled?: boolean | undefined; platforms?: readonly Platform[] | undefined }
  | ({ type: 'crawler:watch'; entry_id: string } & Channel)
  | { type: 'crawler:unwatch'; entry_id: string }
  | { type: 'crawler:set_opt_out'; opted_out: boolean; platform: Platform; channels: readonly string[] }
);

export interface CrawlerScope {
  enabled: boolean;
  platforms: readonly Platform[];
}

export interface Crawler {
  scope: CrawlerScope;
  /** Watched channels by the id of their entry. */
  watched: Readonly<Record<string, Channel>>;
  /** `platform/channel` of channels that opted out. */
  opted_out: Readonly<Record<string, true>>;
}

/** The crawler reads nothing until an operator enables it. */
export const DEFAULT_SCOPE: CrawlerScope = { enabled: false, platforms: [] };
export const crawlerStream = 'crawler';
/** Channels that may be watched. */
export const MAX_WATCHED = 10_000;

/** A handle as it is compared: without `@`, in lower case. */
export const plainChannel = (channel: string): string => channel.trim().replace(/^@/, '').toLowerCase();
const keyOf = (of: Channel): string => `${of.platform}/${of.channel}`;

export const crawler: Decider<Crawler, CrawlerCommand, CrawlerEvent> = {
  initial: { scope: DEFAULT_SCOPE, watched: {}, opted_out: {} },
  decide({ scope, watched, opted_out }, command) {
    const { now: changed_at } = command;
    switch (command.type) {
      case 'crawler:change_scope': {
        const enabled = command.enabled ?? scope.enabled;
        const platforms = PLATFORMS.filter((name) => (command.platforms ?? scope.platforms).includes(name));
        const is_same = enabled === scope.enabled && platforms.join() === scope.platforms.join();
        if (is_same) return [];
        return [{ type: 'crawler:scope_changed', crawler_id: 'crawler', enabled, platforms, changed_at }];
      }
      case 'crawler:watch': {
        const { entry_id, platform: of, channel } = command;
        if (entry_id in watched) return [];
        const entries = Object.values(watched);
        if (entries.some((one) => keyOf(one) === keyOf(command)))
          throw new DomainError('ALREADY_WATCHED', { entry_id });
        if (entries.length >= MAX_WATCHED) throw new DomainError('TOO_MANY_WATCHED', { most: MAX_WATCHED });
        return [{ type: 'crawler:channel_watched', entry_id, platform: of, channel, changed_at }];
      }
      case 'crawler:unwatch': {
        const { entry_id } = command;
        const entry = watched[entry_id];
        if (entry === undefined) throw new DomainError('NOT_WATCHED', { entry_id });
        return [{ type: 'crawler:channel_unwatched', entry_id, ...entry, changed_at }];
      }
      case 'crawler:set_opt_out': {
        const { platform: of, channels } = command;
        const type = command.opted_out ? 'crawler:channel_opted_out' : 'crawler:channel_opted_in';
        return channels
          .filter((channel) => command.opted_out !== keyOf({ platform: of, channel }) in opted_out)
          .map((channel) => ({ type, platform: of, channel, changed_at }));
      }
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'crawler:scope_changed':
        return { ...state, scope: { enabled: event.enabled, platforms: event.platforms } };
      case 'crawler:channel_watched': {
        const { entry_id, platform: of, channel } = event;
        return { ...state, watched: { ...state.watched, [entry_id]: { platform: of, channel } } };
      }
      case 'crawler:channel_unwatched': {
        const { [event.entry_id]: _entry, ...watched } = state.watched;
        return { ...state, watched };
      }
      case 'crawler:channel_opted_out':
        return { ...state, opted_out: { ...state.opted_out, [keyOf(event)]: true } };
      case 'crawler:channel_opted_in': {
        const { [keyOf(event)]: _out, ...opted_out } = state.opted_out;
        return { ...state, opted_out };
      }
      default:
        return unreachable(event);
    }
  },
};
