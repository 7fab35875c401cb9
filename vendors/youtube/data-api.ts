import { z } from 'zod';
import { JsonObjects } from '../../lib/json/objects';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpAnswer, HttpClients, HttpStream } from '../http/port';
import { type YoutubeDataApi, YoutubeRefused } from './port';
import { refusalOf } from './refusals';

/** A page holds up to 2,000 messages. */
const PAGE_BYTES = 16 << 20;
const REFUSAL_BYTES = 64 << 10;
const NO_STREAMER = 'liveStreamingNotEnabled';

const numberText = z.union([z.string(), z.number()]).nullish();
const Broadcasts = z.object({
  items: z
    .array(
      z.object({
        id: z.string(),
        snippet: z.object({
          title: z.string().nullish(),
          actualStartTime: z.string().nullish(),
          liveChatId: z.string().nullish(),
        }),
      }),
    )
    .nullish(),
});
const Videos = z.object({
  items: z
    .array(
      z.object({
        id: z.string(),
        snippet: z
          .object({
            title: z.string().nullish(),
            categoryId: z.string().nullish(),
            tags: z.array(z.string()).nullish(),
          })
          .nullish(),
        statistics: z.object({ likeCount: numberText, viewCount: numberText }).nullish(),
        liveStreamingDetails: z
          .object({
            actualStartTime: z.string().nullish(),
            actualEndTime: z.string().nullish(),
            concurrentViewers: numberText,
            activeLiveChatId: z.string().nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});
const Channels = z.object({
  items: z
    .array(z.object({ id: z.string(), statistics: z.object({ subscriberCount: numberText }).nullish() }))
    .nullish(),
});

export function youtubeDataApi(http: HttpClients, { api_url }: { api_url: string }): YoutubeDataApi {
  const client = http.client('youtube', [hostOf(api_url)]);
  let says_whose = true;
  const urlOf = (path: string, query: Record<string, string | null>) => {
    const parameters = Object.entries(query).flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
    return `${api_url}/youtube/v3/${path}?${new URLSearchParams(parameters as [string, string][]).toString()}`;
  };
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}`, accept: 'application/json' });

  async function get(token: string, path: string, query: Record<string, string | null>): Promise<HttpAnswer> {
    const url = urlOf(path, query);
    const answer = await client.call({ method: 'GET', url, headers: headersOf(token), max_bytes: PAGE_BYTES });
    if (answer.status === 200) return answer;
    throw refusalOf(url, answer.status, answer.body, answer.retry_after_ms);
  }

  async function list<T>(token: string, path: string, query: Record<string, string>, shape: z.ZodType<T>): Promise<T> {
    const answer = await get(token, path, query);
    const read = bodyAs(answer, shape);
    if (read === undefined) throw new YoutubeRefused(hostOf(api_url), 502, null);
    return read;
  }

  return {
    async activeBroadcasts(token) {
      const query = { part: 'id,snippet,status', broadcastStatus: 'active', broadcastType: 'all', maxResults: '50' };
      const ask = async (whose: Record<string, string>) => {
        const listed = list(token, 'liveBroadcasts', { ...query, ...whose }, Broadcasts);
        const { items } = await listed.catch((error: unknown) => {
          // A channel without the right to stream is not live.
          if (error instanceof YoutubeRefused && error.reason === NO_STREAMER) return { items: null };
          throw error;
        });
        return items ?? [];
      };
      if (!says_whose) return ask({});
      try {
        return await ask({ mine: 'true' });
      } catch (error) {
        // The API's documents differ in whether the two filters may be combined.
        if (!(error instanceof YoutubeRefused) || error.status !== 400) throw error;
        says_whose = false;
        return ask({});
      }
    },

    async videos(token, ids) {
      const part = 'snippet,liveStreamingDetails,statistics';
      return (await list(token, 'videos', { part, id: ids.join(','), maxResults: '50' }, Videos)).items ?? [];
    },

    async subscribers(token, ids) {
      const query = { part: 'statistics', id: ids.join(','), maxResults: '50' };
      const { items } = await list(token, 'channels', query, Channels);
      const counted = (items ?? []).map(({ id, statistics }) => [id, Number(statistics?.subscriberCount)] as const);
      return new Map(counted.filter(([, count]) => Number.isSafeInteger(count) && count >= 0));
    },

    async chatPage(token, live_chat_id, page_token) {
      return (await get(token, 'liveChat/messages', chatQuery(live_chat_id, page_token))).body.toString();
    },

    async *chatStream(token, live_chat_id, page_token, signal) {
      const url = urlOf('liveChat/messages/stream', chatQuery(live_chat_id, page_token));
      const answer = await client.stream({ method: 'GET', url, headers: headersOf(token), signal });
      if (answer.status !== 200) {
        throw refusalOf(url, answer.status, await beginningOf(answer), answer.retry_after_ms);
      }
      const pages = new JsonObjects(PAGE_BYTES);
      const text = new TextDecoder();
      for await (const chunk of answer.chunks) yield* pages.push(text.decode(chunk, { stream: true }));
    },
  };
}

const chatQuery = (liveChatId: string, pageToken: string | null) => ({
  liveChatId,
  part: 'id,snippet,authorDetails',
  maxResults: '2000',
  pageToken,
});

async function beginningOf({ chunks }: HttpStream): Promise<Buffer> {
  const read: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    read.push(chunk);
    bytes += chunk.length;
    if (bytes > REFUSAL_BYTES) break;
  }
  return Buffer.concat(read);
}
