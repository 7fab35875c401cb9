import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { PLATFORMS, type Platform } from '../common/vendors';
import { unreachable } from '../common/unreachable';

const CHANNEL = {
  account_id: z.uuid(),
  platform: z.enum(PLATFORMS),
  platform_channel_id: z.string(),
  show_top_chatters: z.boolean(),
  changed_at: instant(),
};
const of_channel = { audit: { target: ['channel', 'platform_channel_id'] } } as const;

/**
 * Whether a channel's streams are shown to everybody. A channel is public until its account opts out. Source: spec doc2
 * §2.14, §4.2 "Public statistics".
 */
export const PUBLIC_STATS_EVENTS = events({
  'public_stats:channel_opted_out': event({ ...CHANNEL, opted_out_via: z.enum(['owner', 'operator']) }, of_channel),
  'public_stats:channel_opted_in': event(CHANNEL, of_channel),
  'public_stats:channel_changed': event(CHANNEL, of_channel),
});
export type PublicStatsEvent = EventOf<typeof PUBLIC_STATS_EVENTS>;

export interface PublicStatsCommand {
  type: 'public_stats:set';
  account_id: string;
  platform: Platform;
  platform_channel_id: string;
  /** Absent members stay as they are. */
  is_public?: boolean | undefined;
  show_top_chatters?: boolean | undefined;
  /** An operator closed the channel after the account's last change. */
  closed_by_operator?: boolean;
  now: string;
}

export interface ChannelPublicness {
  is_public: boolean;
  show_top_chatters: boolean;
}

/** Of a channel that nobody has changed. */
export const DEFAULT_PUBLICNESS: ChannelPublicness = { is_public: true, show_top_chatters: false };

/** Publicness by `platform/channel`. */
export type PublicStats = Readonly<Record<string, ChannelPublicness>>;

export const publicStatsStream = (account_id: string): string => `public-stats-${account_id}`;
/** The WebSocket channel of a broadcast's public figures. Source: spec doc3 §4.1. */
export const publicStatsChannel = (platform: string, broadcast_id: string): string =>
  `public-stats:${platform}:${broadcast_id}`;

interface Channel {
  platform: Platform;
  platform_channel_id: string;
}
const keyOf = ({ platform, platform_channel_id }: Channel): string => `${platform}/${platform_channel_id}`;
export const publicnessOf = (state: PublicStats, channel: Channel): ChannelPublicness =>
  state[keyOf(channel)] ?? DEFAULT_PUBLICNESS;

export const publicStats: Decider<PublicStats, PublicStatsCommand, PublicStatsEvent> = {
  initial: {},
  decide(state, { account_id, platform, platform_channel_id, now, closed_by_operator = false, ...change }) {
    const own = publicnessOf(state, { platform, platform_channel_id });
    const before = { ...own, is_public: own.is_public && !closed_by_operator };
    const { is_public = before.is_public, show_top_chatters = before.show_top_chatters } = change;
    const changed = { account_id, platform, platform_channel_id, show_top_chatters, changed_at: now };
    if (is_public !== before.is_public || (closed_by_operator && change.is_public === false)) {
      return is_public
        ? [{ type: 'public_stats:channel_opted_in', ...changed }]
        : [{ type: 'public_stats:channel_opted_out', ...changed, opted_out_via: 'owner' }];
    }
    if (show_top_chatters === before.show_top_chatters) return [];
    return [{ type: 'public_stats:channel_changed', ...changed }];
  },
  evolve(state, event) {
    const { show_top_chatters } = event;
    const set = (is_public: boolean) => ({ ...state, [keyOf(event)]: { is_public, show_top_chatters } });
    switch (event.type) {
      case 'public_stats:channel_opted_out':
        return set(false);
      case 'public_stats:channel_opted_in':
        return set(true);
      case 'public_stats:channel_changed':
        return set(publicnessOf(state, event).is_public);
      default:
        return unreachable(event);
    }
  },
};
