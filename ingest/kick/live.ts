import type { ConnectionTokens } from '../../services/connections/connection-tokens';
import { broadcastIdOf } from '../../domain/history/channel-status';
import type { KickChannel, KickChannels } from '../../vendors/kick/port';
import { readInstant } from '../runtime/parse/times';
import { withAnyToken } from '../runtime/connection/with-any-token';
import type { Broadcast, LiveLook, SeenChannel } from '../runtime/live-status/live-watch';
import { wholeOf } from '../runtime/parse/numbers';

/** Reads Kick's channels on air, many per call. Kick's API counts no followers. */
export function createKickLook(api: KickChannels, tokens: ConnectionTokens): LiveLook {
  return {
    platform: 'kick',
    most: 50,
    every_ms: 25_000,
    turns: true,
    async look(channels) {
      const ids = channels.map(({ platform_channel_id }) => platform_channel_id);
      const found = await withAnyToken(tokens, channels, (token) => api.channels(ids, token));
      const by_id = new Map(found.map((channel) => [String(channel.broadcaster_user_id), channel]));
      return new Map(
        channels.flatMap(({ connection_id, platform_channel_id }): [string, SeenChannel][] => {
          const channel = by_id.get(platform_channel_id);
          return channel ? [[connection_id, { broadcasts: broadcastsOf(channel, platform_channel_id), over: [] }]] : [];
        }),
      );
    },
  };
}

function broadcastsOf(channel: KickChannel, channel_id: string): Broadcast[] {
  const { stream, slug } = channel;
  const started_at = readInstant(stream?.start_time);
  const broadcast_id = broadcastIdOf(channel_id, started_at);
  if (!stream?.is_live || broadcast_id === null) return [];
  const [title, category] = [channel.stream_title || null, channel.category?.name || null];
  const broadcaster = { user_id: channel.broadcaster_user_id, channel_slug: slug ?? null };
  return [
    {
      broadcast_id,
      viewer_count: wholeOf(stream.viewer_count),
      follower_count: null,
      title,
      category,
      tags: stream.custom_tags ?? [],
      started_at,
      // In the form of the webhook.
      raw: { broadcaster, is_live: true, title, category: { name: category }, started_at, ended_at: null },
    },
  ];
}
