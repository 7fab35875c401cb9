import { LRUCache } from 'lru-cache';
import {
  type ConnectionTokens,
  ReconnectRequired,
  TokenUnavailable,
} from '../../services/connections/connection-tokens';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { Slots } from '../../lib/async/slots';
import { HttpFailed } from '../../vendors/http/port';
import type { TwitchStream, TwitchStreams } from '../../vendors/twitch/port';
import { withAnyToken } from '../runtime/connection/with-any-token';
import type { LiveLook, SeenChannel, WatchedChannel } from '../runtime/live-status/live-watch';
import { onlineEvent, stateId } from './looks/catch-up';
import { wholeOf } from '../runtime/parse/numbers';
import { readInstant } from '../runtime/parse/times';

/**
 * Follower counts need a call per channel: read at this interval, a few at a time, so that a poll takes no longer than
 * its minute.
 */
const FOLLOWERS = { every_ms: 600_000, at_once: 8, most_kept: 50_000 };

/** Failures of a single channel: the figures of the others are stored, and the next poll reads its count again. */
const PASSING = [HttpFailed, NotSent, OutcomeUnknown, ReconnectRequired, TokenUnavailable];

/**
 * Twitch's figures of broadcasts on air; EventSub reports begin and end. Followers are counted with a channel's own
 * token.
 */
export function createTwitchLook(api: TwitchStreams, tokens: ConnectionTokens): LiveLook {
  const asking = new Slots(FOLLOWERS.at_once);
  const counts = new LRUCache<string, { count: number | null }>({ max: FOLLOWERS.most_kept });

  async function followersOf(channel: WatchedChannel): Promise<number | null> {
    const known = counts.get(channel.connection_id);
    if (known !== undefined) return known.count;
    try {
      const count = await asking.use(() => askFollowers(channel));
      keep(channel, count);
      return count;
    } catch (error) {
      // Refused without the scope, which only another login of the owner grants.
      if (error instanceof HttpFailed && error.status < 500 && error.status !== 429) keep(channel, null);
      else if (!PASSING.some((kind) => error instanceof kind)) throw error;
      return null;
    }
  }

  function keep({ connection_id }: WatchedChannel, count: number | null): void {
    // A random interval, so that channels read together are not read together again.
    counts.set(connection_id, { count }, { ttl: FOLLOWERS.every_ms * (0.8 + Math.random() / 5) });
  }

  function askFollowers(channel: WatchedChannel): Promise<number | null> {
    return withAnyToken(tokens, [channel], (token, { client_id, platform_channel_id }) =>
      api.followers(platform_channel_id, { token, client_id }),
    );
  }

  return {
    platform: 'twitch',
    most: 100,
    every_ms: 50_000,
    turns: false,
    turnId: (name, stream_id) => stateId(name === 'stream_online' ? 'stream.online' : 'stream.offline', stream_id),
    async look(channels) {
      const ids = channels.map(({ platform_channel_id }) => platform_channel_id);
      const streams = await withAnyToken(tokens, channels, (token, { client_id }) =>
        api.live(ids, { token, client_id }),
      );
      const by_user = new Map(streams.map((stream) => [stream.user_id, stream]));
      const seen = channels.map(async (channel): Promise<[string, SeenChannel]> => {
        const stream = by_user.get(channel.platform_channel_id);
        const broadcasts = stream === undefined ? [] : [broadcastOf(stream, await followersOf(channel))];
        return [channel.connection_id, { broadcasts, over: [] }];
      });
      return new Map(await Promise.all(seen));
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
  raw: onlineEvent({ ...stream }),
});
