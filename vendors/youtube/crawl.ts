import { z } from 'zod';
import type { ChannelCrawl, CrawlApp, ShownChannel } from '../crawl/port';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import { COSTS, isUsedUp, MAX_IDS, YoutubeRefused } from './port';
import { refusalOf } from './refusals';

const text = z.string().nullish();
const Channels = z.object({
  items: z
    .array(
      z.object({
        id: z.string(),
        snippet: z.object({ title: text, description: text, customUrl: text }),
        contentDetails: z.object({ relatedPlaylists: z.object({ uploads: text }).nullish() }).nullish(),
      }),
    )
    .nullish(),
});
type Channel = NonNullable<z.output<typeof Channels>['items']>[number];
const Uploads = z.object({ items: z.array(z.object({ contentDetails: z.object({ videoId: z.string() }) })).nullish() });
const Videos = z.object({
  items: z
    .array(
      z.object({
        id: z.string(),
        snippet: z.object({ title: text, categoryId: text }).nullish(),
        liveStreamingDetails: z
          .object({
            actualStartTime: text,
            actualEndTime: text,
            concurrentViewers: z.union([z.string(), z.number()]).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});
type Video = NonNullable<z.output<typeof Videos>['items']>[number];

/** Handles per call, each of which has its own requests. */
const MOST = 10;
/** Newest uploads that are searched for a broadcast on air. */
const UPLOADS = MAX_IDS / MOST;

export interface CrawlQuota {
  /** Takes units that connections leave; false where they leave too few. */
  spare(client_id: string, units: number): Promise<boolean>;
  exhausted(client_id: string): Promise<void>;
}

/**
 * YouTube's channels by their handles, with the API key of the installation. A broadcast is found among the newest
 * uploads, for two units a channel: a search would cost a hundred.
 */
export function youtubeCrawl(
  http: HttpClients,
  { api_url, api_key }: { api_url: string; api_key: string },
  quota: CrawlQuota,
): ChannelCrawl {
  const client = http.client('youtube', [hostOf(api_url)]);

  async function list<T>(path: string, query: Record<string, string>, shape: z.ZodType<T>): Promise<T> {
    const url = `${api_url}/youtube/v3/${path}?${new URLSearchParams(query).toString()}`;
    const headers = { 'x-goog-api-key': api_key, accept: 'application/json' };
    const answer = await client.call({ method: 'GET', url, headers });
    if (answer.status !== 200) throw refusalOf(url, answer.status, answer.body, answer.retry_after_ms);
    const read = bodyAs(answer, shape);
    if (read === undefined) throw new YoutubeRefused(hostOf(api_url), 502, null);
    return read;
  }

  /** Null where connections leave too few units. */
  async function paid<T>({ client_id }: CrawlApp, units: number, read: () => Promise<T>): Promise<T | null> {
    if (!(await quota.spare(client_id, units))) return null;
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof YoutubeRefused) || !isUsedUp(error.reason)) throw error;
      await quota.exhausted(client_id);
      return null;
    }
  }

  /** Ids of the newest uploads; none of a channel that never uploaded. */
  async function uploadsOf({ contentDetails }: Channel): Promise<string[]> {
    const playlistId = contentDetails?.relatedPlaylists?.uploads;
    if (!playlistId) return [];
    const query = { part: 'contentDetails', playlistId, maxResults: String(UPLOADS) };
    try {
      const { items } = await list('playlistItems', query, Uploads);
      return (items ?? []).map((item) => item.contentDetails.videoId);
    } catch (error) {
      if (error instanceof YoutubeRefused && error.status === 404) return [];
      throw error;
    }
  }

  async function read(handles: readonly string[]): Promise<ShownChannel[]> {
    const found: { channel: Channel; handle: string; uploads: string[] }[] = [];
    for (const handle of handles) {
      const query = { part: 'snippet,contentDetails', forHandle: `@${handle}` };
      const [channel] = (await list('channels', query, Channels)).items ?? [];
      if (channel !== undefined) found.push({ channel, handle, uploads: await uploadsOf(channel) });
    }
    const ids = found.flatMap(({ uploads }) => uploads);
    const query = { part: 'snippet,liveStreamingDetails', id: ids.join(','), maxResults: String(MAX_IDS) };
    const videos = ids.length === 0 ? [] : ((await list('videos', query, Videos)).items ?? []);
    return found.map(({ channel, handle, uploads }) => ({
      ...profileOf(channel),
      handle: channel.snippet.customUrl || handle,
      display_name: channel.snippet.title || handle,
      broadcast: broadcastAmong(videos.filter(({ id }) => uploads.includes(id))),
    }));
  }

  return {
    most: MOST,
    read: (handles, app) => paid(app, (2 * handles.length + 1) * COSTS.list, () => read(handles)),
    profiles: (ids, app) =>
      paid(app, COSTS.list, async () => {
        const query = { part: 'snippet', id: ids.join(','), maxResults: String(MAX_IDS) };
        return ((await list('channels', query, Channels)).items ?? []).map(profileOf);
      }),
  };
}

const profileOf = ({ id, snippet }: Channel) => ({
  platform_channel_id: id,
  bio: snippet.description ?? null,
  broadcaster_type: null,
});

/** The broadcast on air; of several the one that began last. */
function broadcastAmong(videos: readonly Video[]): ShownChannel['broadcast'] {
  const live = videos
    .filter(({ liveStreamingDetails: of }) => of?.actualStartTime && !of.actualEndTime)
    .sort((a, b) => startOf(b) - startOf(a))[0];
  if (live === undefined) return null;
  return {
    broadcast_id: live.id,
    title: live.snippet?.title || null,
    category: live.snippet?.categoryId || null,
    viewer_count: Number(live.liveStreamingDetails?.concurrentViewers ?? 0) || 0,
    started_at: live.liveStreamingDetails?.actualStartTime ?? null,
  };
}

const startOf = (video: Video): number => Date.parse(video.liveStreamingDetails?.actualStartTime ?? '') || 0;
