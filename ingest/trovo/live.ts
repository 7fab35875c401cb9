import { broadcastIdOf } from '../../domain/history/channel-status';
import type { TrovoChannel, TrovoOpenApi } from '../../vendors/trovo/port';
import type { Broadcast, LiveLook, SeenChannel, WatchedChannel } from '../runtime/live-status/live-watch';
import { wholeOf } from '../runtime/parse/numbers';
import { readInstant } from '../runtime/parse/times';

/** Reads Trovo's channels, one per call; needs no token of the channel's own. */
export function createTrovoLook(api: Pick<TrovoOpenApi, 'channel'>): LiveLook {
  return {
    platform: 'trovo',
    most: 10,
    every_ms: 25_000,
    turns: true,
    async look(channels) {
      const looked = new Map<string, SeenChannel>();
      const failures: unknown[] = [];
      await Promise.all(
        channels.map(async (one) => {
          try {
            const channel = await api.channel(one.client_id, one.platform_channel_id);
            looked.set(one.connection_id, { broadcasts: broadcastsOf(channel, one), over: [] });
          } catch (error) {
            failures.push(error);
          }
        }),
      );
      // A deleted channel does not affect the others.
      if (looked.size === 0 && failures.length > 0) throw failures[0];
      return looked;
    },
  };
}

function broadcastsOf(channel: TrovoChannel, { platform_channel_id }: WatchedChannel): Broadcast[] {
  const started_at = readInstant(channel.started_at);
  const broadcast_id = broadcastIdOf(platform_channel_id, started_at);
  if (!channel.is_live || broadcast_id === null) return [];
  const [live_title, category_name] = [channel.live_title || null, channel.category_name || null];
  return [
    {
      broadcast_id,
      viewer_count: wholeOf(channel.current_viewers),
      follower_count: wholeOf(channel.followers),
      title: live_title,
      category: category_name,
      tags: [],
      started_at,
      raw: { channel_id: platform_channel_id, is_live: true, live_title, category_name, started_at },
    },
  ];
}
