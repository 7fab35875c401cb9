import type { ConnectionTokens } from '../../access/connection-tokens';
import { HttpFailed } from '../../vendors/http/port';
import type { TwitchStream, TwitchStreams } from '../../vendors/twitch/port';
import { withAnyToken } from '../runtime/with-any-token';
import type { LiveLook, SeenChannel, WatchedChannel } from '../runtime/live-watch';
import { wholeOf } from '../runtime/numbers';
import { readInstant } from '../runtime/times';

/** Twitch's figures of what is on air; that it is, EventSub tells. Followers are counted for a channel's own token. */
export function createTwitchLook(api: TwitchStreams, tokens: ConnectionTokens): LiveLook {
  async function followersOf(channel: WatchedChannel): Promise<number | null> {
    const count = withAnyToken(tokens, [channel], (token, { client_id, platform_channel_id }) =>
      api.followers(platform_channel_id, { token, client_id }),
    );
    return count.catch((error: unknown) => {
      // Without the scope the count is not told; anything else is told by the next look.
      if (error instanceof HttpFailed) return null;
      throw error;
    });
  }

  return {
    platform: 'twitch',
    most: 100,
    every_ms: 50_000,
    turns: false,
    async look(channels) {
      const ids = channels.map(({ platform_channel_id }) => platform_channel_id);
      const streams = await withAnyToken(tokens, channels, (token, { client_id }) =>
        api.live(ids, { token, client_id }),
      );
      const looked = new Map<string, SeenChannel>();
      for (const channel of channels) {
        const stream = streams.find(({ user_id }) => user_id === channel.platform_channel_id);
        const broadcasts = stream === undefined ? [] : [broadcastOf(stream, await followersOf(channel))];
        looked.set(channel.connection_id, { broadcasts, over: [] });
      }
      return looked;
    },
  };
}

const broadcastOf = (stream: TwitchStream, follower_count: number | null) => ({
  broadcast_id: stream.id,
  viewer_count: wholeOf(stream.viewer_count),
  follower_count,
  title: stream.title || null,
  category: stream.game_name || null,
  tags: stream.tags ?? [],
  started_at: readInstant(stream.started_at),
  raw: stream,
});
