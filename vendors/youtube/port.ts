import { HttpFailed } from '../http/port';

/** An answer that is no success; `reason` is Google's word: `quotaExceeded`, `liveChatEnded`, `authError`. */
export class YoutubeRefused extends HttpFailed {
  constructor(
    host: string,
    status: number,
    readonly reason: string | null,
    retry_after_ms?: number,
  ) {
    super(host, status, retry_after_ms);
    this.name = 'YoutubeRefused';
  }
}

const USED_UP: ReadonlySet<string | null> = new Set(['quotaExceeded', 'dailyLimitExceeded']);

/** Whether the reason means that the app's daily quota is used up. */
export const isUsedUp = (reason: string | null): boolean => USED_UP.has(reason);

/** Units of the day's quota that a call costs. */
export const COSTS = { list: 1, chat: 5, write: 50 } as const;
/** Most ids of one call. */
export const MAX_IDS = 50;

/** A broadcast of the token's own channel. */
export interface YoutubeBroadcast {
  /** Of its video. */
  id: string;
  snippet: { title?: string | null; actualStartTime?: string | null; liveChatId?: string | null };
}

/** A video; counts are texts. */
export interface YoutubeVideo {
  id: string;
  snippet?: { title?: string | null; categoryId?: string | null; tags?: string[] | null } | null;
  statistics?: { likeCount?: string | number | null; viewCount?: string | number | null } | null;
  liveStreamingDetails?: {
    actualStartTime?: string | null;
    actualEndTime?: string | null;
    concurrentViewers?: string | number | null;
    activeLiveChatId?: string | null;
  } | null;
}

/** YouTube's Data API as far as live broadcasts and their chats need it. Every call throws as `HttpClient.ask`. */
export interface YoutubeDataApi {
  /** The broadcasts of the token's own channel that are on air. */
  activeBroadcasts(token: string): Promise<YoutubeBroadcast[]>;
  /** At most {@link MAX_IDS}; those that are not there are left out. */
  videos(token: string, ids: readonly string[]): Promise<YoutubeVideo[]>;
  /** Subscribers by channel, at most {@link MAX_IDS}; who hides them is left out. */
  subscribers(token: string, ids: readonly string[]): Promise<Map<string, number>>;
  /** A page of a chat as JSON text; the newest history without a page token. */
  chatPage(token: string, live_chat_id: string, page_token: string | null): Promise<string>;
  /** The pages of a chat as they come, each as JSON text, until the vendor or the signal ends it. */
  chatStream(
    token: string,
    live_chat_id: string,
    page_token: string | null,
    signal: AbortSignal,
  ): AsyncGenerator<string, void>;
}
