import type { ConnectionTokens } from '../../services/connections/connection-tokens';
import {
  COSTS,
  isUsedUp,
  MAX_IDS,
  YoutubeRefused,
  type YoutubeDataApi,
  type YoutubeVideo,
} from '../../vendors/youtube/port';
import { withAnyToken } from '../runtime/connection/with-any-token';
import type { Broadcast, LiveLook, SeenChannel, WatchedChannel } from '../runtime/live-status/live-watch';
import { wholeOf } from '../runtime/parse/numbers';
import { readInstant } from '../runtime/parse/times';
import type { YoutubeQuota } from './quota';

/** Interval at which a channel on air is checked for a second broadcast. */
const SECOND_EVERY_MS = 300_000;

/**
 * YouTube returns a channel's broadcasts to its own token alone, one unit per call; but videos fifty at once. So a
 * channel on air is polled by its videos. Each channel pays from its share of the quota, and is left out while it has
 * none.
 */
export function createYoutubeLook(api: YoutubeDataApi, tokens: ConnectionTokens, quota: YoutubeQuota): LiveLook {
  /** Time of the last read of a channel's broadcasts; Unix milliseconds. */
  const asked = new Map<string, number>();

  /** Makes a paid call; undefined when the quota does not allow it, or YouTube answers that it is used up. */
  async function paid<T>(channel: WatchedChannel, call: (token: string) => Promise<T>): Promise<T | undefined> {
    const { client_id, connection_id } = channel;
    if (!(await quota.take(client_id, connection_id, COSTS.list)).granted) return undefined;
    try {
      return await withAnyToken(tokens, [channel], call);
    } catch (error) {
      if (!(error instanceof YoutubeRefused) || !isUsedUp(error.reason)) throw error;
      await quota.exhausted(client_id);
      return undefined;
    }
  }

  async function activeOf(channel: WatchedChannel, online: readonly string[]): Promise<readonly string[] | undefined> {
    const now = Date.now();
    if (online.length > 0 && now - (asked.get(channel.connection_id) ?? 0) < SECOND_EVERY_MS) return online;
    asked.delete(channel.connection_id);
    asked.set(channel.connection_id, now);
    // Evicts channels without a recent read; the eldest come first.
    for (const [id, at] of asked) {
      if (now - at < SECOND_EVERY_MS) break;
      asked.delete(id);
    }
    const active = await paid(channel, (token) => api.activeBroadcasts(token));
    return active && [...new Set([...online, ...active.map(({ id }) => id)])];
  }

  /** Reads videos by id, fifty at once, with any channel that can pay. */
  async function videosOf(ids: readonly string[], channels: readonly WatchedChannel[]) {
    const videos = new Map<string, YoutubeVideo>();
    let complete = true;
    for (let from = 0; from < ids.length; from += MAX_IDS) {
      const some = ids.slice(from, from + MAX_IDS);
      let found: YoutubeVideo[] | undefined;
      for (const channel of channels) if (!found) found = await paid(channel, (token) => api.videos(token, some));
      for (const video of found ?? []) videos.set(video.id, video);
      complete &&= found !== undefined;
    }
    return { videos, complete };
  }

  return {
    platform: 'youtube',
    most: MAX_IDS,
    every_ms: 50_000,
    turns: true,
    async look(channels, online) {
      const candidates = new Map<WatchedChannel, readonly string[]>();
      const failures: unknown[] = [];
      for (const channel of channels) {
        try {
          const ids = await activeOf(channel, online.get(channel.account_id) ?? []);
          if (ids !== undefined) candidates.set(channel, ids);
        } catch (error) {
          failures.push(error);
        }
      }
      const asking = [...candidates].filter(([, ids]) => ids.length > 0);
      const payers = asking.map(([channel]) => channel);
      const { videos, complete } = await videosOf([...new Set(asking.flatMap(([, ids]) => ids))], payers);
      const live = payers.filter((channel) => candidates.get(channel)!.some((id) => isLive(videos.get(id))));
      const subscribers = await subscribersOf(live);
      const looked = new Map<string, SeenChannel>();
      for (const [channel, ids] of candidates) {
        if (ids.length > 0 && !complete) continue;
        const count = subscribers.get(channel.platform_channel_id) ?? null;
        looked.set(channel.connection_id, lookedAt(ids, videos, count, channel));
      }
      if (looked.size === 0 && failures.length > 0) throw failures[0];
      return looked;
    },
  };

  async function subscribersOf(live: readonly WatchedChannel[]): Promise<Map<string, number>> {
    const ids = [...new Set(live.map(({ platform_channel_id }) => platform_channel_id))];
    const [payer] = live;
    return (payer && (await paid(payer, (token) => api.subscribers(token, ids)))) ?? new Map<string, number>();
  }
}

const isLive = (video: YoutubeVideo | undefined): boolean =>
  readInstant(video?.liveStreamingDetails?.actualStartTime) !== null &&
  readInstant(video?.liveStreamingDetails?.actualEndTime) === null;

function lookedAt(
  ids: readonly string[],
  videos: ReadonlyMap<string, YoutubeVideo>,
  follower_count: number | null,
  { platform_channel_id }: WatchedChannel,
): SeenChannel {
  const found = ids.flatMap((id) => videos.get(id) ?? []);
  const over = found.flatMap(({ id, liveStreamingDetails }) => {
    const ended_at = readInstant(liveStreamingDetails?.actualEndTime);
    return ended_at === null ? [] : [{ broadcast_id: id, ended_at }];
  });
  const broadcasts = found.filter(isLive).map((video): Broadcast => {
    const { snippet, liveStreamingDetails } = video;
    const started_at = readInstant(liveStreamingDetails?.actualStartTime);
    const title = snippet?.title || null;
    return {
      broadcast_id: video.id,
      viewer_count: wholeOf(liveStreamingDetails?.concurrentViewers),
      follower_count,
      title,
      category: snippet?.categoryId || null,
      tags: snippet?.tags ?? [],
      started_at,
      raw: {
        id: video.id,
        snippet: {
          channelId: platform_channel_id,
          title,
          actualStartTime: started_at,
          liveChatId: liveStreamingDetails?.activeLiveChatId ?? null,
        },
      },
    };
  });
  return { broadcasts, over };
}
