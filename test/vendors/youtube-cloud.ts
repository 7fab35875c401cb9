import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { FakeAnswer, FakeCall } from './cloud';
import { FakeTokens } from './cloud-tokens';
import { FakeVendor, type LoginAnswer } from './fake';

export interface FakeBroadcast {
  video_id: string;
  channel_id: string;
  live_chat_id: string;
  title: string;
  category_id: string;
  tags: string[];
  started_at: string;
  viewers: number;
  likes: number;
  ended_at: string | null;
}

type Item = Record<string, unknown>;

interface Chat {
  /** In the order of their pages; a duplicate is there twice. */
  items: Item[];
  streams: Set<ServerResponse>;
  ended_at: string | null;
}

/** The key of the installation's project. */
export const YOUTUBE_KEY = 'youtube-api-key';

/** Units that a call costs. */
const COSTS = { list: 1, chat: 5 };

/**
 * YouTube's Data API as far as live chat needs it: broadcasts, videos, `liveChat/messages` by pages and as a server
 * stream (one JSON array that never ends), the day's quota, and Google's tokens.
 */
export class FakeYoutube extends FakeVendor {
  readonly tokens = new FakeTokens('youtube');
  readonly broadcasts = new Map<string, FakeBroadcast>();
  readonly subscribers = new Map<string, number>();
  /** Channels by their handles, which begin with `@`. */
  readonly handles = new Map<string, string>();
  readonly descriptions = new Map<string, string>();
  private readonly chats = new Map<string, Chat>();
  /** Units left today. */
  quota = 10_000;
  used = 0;
  polling_interval_ms = 1_000;
  /** Whether the stream is offered; without it only pages are. */
  streaming = true;
  /** Time of the end of a running broadcast: `offlineAt` of pages, `actualEndTime` of videos. */
  no_end: unknown = undefined;
  /** A stream ends after its first page, though the chat goes on. */
  brief = false;

  constructor() {
    super(LOGINS);
    this.on('POST /token', (call) => this.token(new URLSearchParams(call.body)));
    this.on(
      'GET /youtube/v3/liveBroadcasts',
      this.priced(COSTS.list, (call) => this.liveBroadcasts(call)),
    );
    this.on(
      'GET /youtube/v3/videos',
      this.priced(COSTS.list, (call) => this.videos(call)),
    );
    this.on(
      'GET /youtube/v3/channels',
      this.priced(COSTS.list, (call) => this.channels(call)),
    );
    this.on(
      'GET /youtube/v3/playlistItems',
      this.priced(COSTS.list, (call) => this.playlistItems(call)),
    );
    this.on(
      'GET /youtube/v3/liveChat/messages',
      this.priced(COSTS.chat, (call) => this.page(call)),
    );
    this.on(
      'GET /youtube/v3/liveChat/messages/stream',
      this.priced(COSTS.chat, (call, to) => this.stream(call, to)),
    );
  }

  /** Somebody goes live. */
  goLive(channel_id: string, of: Partial<FakeBroadcast> = {}): FakeBroadcast {
    const broadcast = {
      video_id: randomUUID().slice(0, 11),
      channel_id,
      live_chat_id: `KicK${randomUUID()}`,
      title: 'A live broadcast',
      category_id: '20',
      tags: ['games'],
      started_at: new Date().toISOString(),
      viewers: 12,
      likes: 3,
      ended_at: null,
      ...of,
    };
    this.broadcasts.set(broadcast.video_id, broadcast);
    this.chats.set(broadcast.live_chat_id, { items: [], streams: new Set(), ended_at: null });
    return broadcast;
  }

  /** The broadcast is over: the chat says so, and its stream ends. */
  goOffline(broadcast: FakeBroadcast): void {
    broadcast.ended_at = new Date().toISOString();
    const chat = this.chats.get(broadcast.live_chat_id)!;
    chat.ended_at = broadcast.ended_at;
    for (const stream of chat.streams) {
      stream.write(`,\n${JSON.stringify(this.response(chat, chat.items.length))}`);
      stream.end(']');
    }
  }

  /** One item of a chat, given to whoever listens. The `id` is made up where the item has none. */
  say(broadcast: FakeBroadcast, item: Item): Item {
    const chat = this.chats.get(broadcast.live_chat_id)!;
    const said = { id: randomUUID(), ...item };
    chat.items.push(said);
    const from = chat.items.length - 1;
    for (const stream of chat.streams) stream.write(`,\n${JSON.stringify(this.response(chat, from))}`);
    return said;
  }

  text(broadcast: FakeBroadcast, author: string, text: string, of: object = {}): Item {
    return this.say(broadcast, {
      snippet: {
        type: 'textMessageEvent',
        liveChatId: broadcast.live_chat_id,
        authorChannelId: author,
        publishedAt: new Date().toISOString(),
        hasDisplayContent: true,
        displayMessage: text,
        textMessageDetails: { messageText: text },
      },
      authorDetails: { channelId: author, displayName: author, isChatOwner: false, isChatModerator: false, ...of },
    });
  }

  /** Streams of this chat that are open. */
  listeners({ live_chat_id }: FakeBroadcast): number {
    return this.chats.get(live_chat_id)!.streams.size;
  }

  private priced(units: number, handler: (call: FakeCall, response: ServerResponse) => FakeAnswer) {
    return (call: FakeCall, response: ServerResponse): FakeAnswer => {
      const is_known = call.headers['x-goog-api-key'] === YOUTUBE_KEY || this.tokens.of(call.headers.authorization);
      if (!is_known) return refused(401, 'authError', 'Invalid Credentials');
      if (this.quota < units) return refused(403, 'quotaExceeded', 'The request cannot be completed');
      this.quota -= units;
      this.used += units;
      return handler(call, response);
    };
  }

  private token(form: URLSearchParams): FakeAnswer {
    const refreshing = form.get('grant_type') === 'refresh_token';
    const given = refreshing
      ? this.tokens.refresh(form.get('refresh_token') ?? '')
      : this.tokens.exchange(form.get('code') ?? '');
    if (given === null) return { status: 400, body: { error: 'invalid_grant', error_description: 'Bad Request' } };
    const { access_token, refresh_token, scopes } = given;
    return { body: { access_token, refresh_token, expires_in: 3599, scope: scopes.join(' '), token_type: 'Bearer' } };
  }

  private liveBroadcasts({ headers, query }: FakeCall): FakeAnswer {
    const { owner } = this.tokens.of(headers.authorization)!;
    if (query.get('mine') !== 'true' || query.get('broadcastStatus') !== 'active')
      return missing('mine, broadcastStatus');
    const items = [...this.broadcasts.values()]
      .filter(({ channel_id, ended_at }) => channel_id === owner && ended_at === null)
      .map(({ video_id, channel_id, live_chat_id, title, started_at }) => ({
        kind: 'youtube#liveBroadcast',
        id: video_id,
        snippet: { channelId: channel_id, title, actualStartTime: started_at, liveChatId: live_chat_id },
        status: { lifeCycleStatus: 'live', privacyStatus: 'public' },
      }));
    return { body: { kind: 'youtube#liveBroadcastListResponse', items, pageInfo: { totalResults: items.length } } };
  }

  private videos({ query }: FakeCall): FakeAnswer {
    const ids = idsOf(query);
    if (ids.length === 0 || ids.length > 50) return missing('id');
    const items = ids
      .flatMap((id) => this.broadcasts.get(id) ?? [])
      .map((broadcast) => ({
        kind: 'youtube#video',
        id: broadcast.video_id,
        snippet: {
          channelId: broadcast.channel_id,
          title: broadcast.title,
          categoryId: broadcast.category_id,
          tags: broadcast.tags,
          liveBroadcastContent: broadcast.ended_at === null ? 'live' : 'none',
        },
        statistics: { viewCount: String(broadcast.viewers * 3), likeCount: String(broadcast.likes) },
        liveStreamingDetails: {
          actualStartTime: broadcast.started_at,
          ...(broadcast.ended_at === null
            ? {
                concurrentViewers: String(broadcast.viewers),
                activeLiveChatId: broadcast.live_chat_id,
                actualEndTime: this.no_end,
              }
            : { actualEndTime: broadcast.ended_at }),
        },
      }));
    return { body: { kind: 'youtube#videoListResponse', items } };
  }

  private channels({ query, headers }: FakeCall): FakeAnswer {
    const owner = this.tokens.of(headers.authorization)?.owner ?? null;
    const named = [this.handles.get(query.get('forHandle') ?? '') ?? []].flat();
    const items = (query.get('mine') === 'true' && owner !== null ? [owner] : [...named, ...idsOf(query)]).map(
      (id) => ({
        kind: 'youtube#channel',
        id,
        snippet: { title: id, customUrl: this.handleOf(id), description: this.descriptions.get(id) ?? '' },
        contentDetails: { relatedPlaylists: { likes: '', uploads: `UU${id}` } },
        statistics: { subscriberCount: String(this.subscribers.get(id) ?? 0), hiddenSubscriberCount: false },
      }),
    );
    return { body: { kind: 'youtube#channelListResponse', items } };
  }

  private handleOf(id: string): string {
    return [...this.handles].find(([, of]) => of === id)?.[0] ?? `@${id.toLowerCase()}`;
  }

  /** Newest uploads, broadcasts on air among them; no playlist of a channel without any. */
  private playlistItems({ query }: FakeCall): FakeAnswer {
    const id = (query.get('playlistId') ?? '').slice('UU'.length);
    const videos = [...this.broadcasts.values()].filter(({ channel_id }) => channel_id === id).reverse();
    if (videos.length === 0) return refused(404, 'playlistNotFound', 'The playlist cannot be found.');
    const items = videos.slice(0, Number(query.get('maxResults') ?? 5)).map(({ video_id }) => ({
      kind: 'youtube#playlistItem',
      contentDetails: { videoId: video_id, videoPublishedAt: new Date().toISOString() },
    }));
    return { body: { kind: 'youtube#playlistItemListResponse', items } };
  }

  private chatOf({ query }: FakeCall): { chat: Chat; from: number } | FakeAnswer {
    const chat = this.chats.get(query.get('liveChatId') ?? '');
    if (chat === undefined) return refused(404, 'liveChatNotFound', 'The live chat is not found');
    const from = readToken(query.get('pageToken'));
    if (chat.ended_at !== null && from >= chat.items.length) return refused(403, 'liveChatEnded', 'The chat is over');
    return { chat, from };
  }

  private page(call: FakeCall): FakeAnswer {
    const found = this.chatOf(call)!;
    return 'chat' in found ? { body: this.response(found.chat, found.from) } : found;
  }

  private stream(call: FakeCall, response: ServerResponse): FakeAnswer {
    if (!this.streaming) return refused(404, 'notFound', 'Not Found');
    const found = this.chatOf(call)!;
    if (!('chat' in found)) return found;
    const { chat, from } = found;
    call.status = 200;
    response.writeHead(200, { 'content-type': 'application/json; charset=UTF-8' });
    response.write(`[${JSON.stringify(this.response(chat, from))}`);
    if (this.brief) return void response.end(']');
    chat.streams.add(response);
    response.on('close', () => chat.streams.delete(response));
    return undefined;
  }

  private response(chat: Chat, from: number) {
    const items = chat.items.slice(from);
    return {
      kind: 'youtube#liveChatMessageListResponse',
      nextPageToken: pageToken(from + items.length),
      pollingIntervalMillis: this.polling_interval_ms,
      pageInfo: { totalResults: items.length, resultsPerPage: items.length },
      offlineAt: chat.ended_at ?? this.no_end,
      items,
    };
  }
}

const idsOf = (query: URLSearchParams) => query.getAll('id').flatMap((ids) => ids.split(',').filter(Boolean));
const pageToken = (at: number) => Buffer.from(`at:${at}`).toString('base64url');
const readToken = (token: string | null) =>
  token === null ? 0 : Number(Buffer.from(token, 'base64url').toString().slice(3)) || 0;

const refused = (code: number, reason: string, message: string): FakeAnswer => ({
  status: code,
  body: { error: { code, message, errors: [{ domain: 'youtube', reason, message }] } },
});
const missing = (what: string) => refused(400, 'missingRequiredParameter', `No filter selected: ${what}`);

/** Who logs in at `www.googleapis.com`, which a login asks two things. */
const LOGINS: LoginAnswer = ({ method, path, query, token }, people) => {
  if (method === 'GET' && path === '/oauth2/v3/tokeninfo') {
    const person = people.get(query.get('access_token') ?? '');
    if (person === undefined) return { status: 400, body: { error_description: 'Invalid Value' } };
    const { client_id, id, email, scopes = ['openid'] } = person;
    const exp = String(Math.floor(Date.now() / 1000) + 3599);
    const about = { azp: client_id, aud: client_id, sub: id, scope: scopes.join(' '), exp, expires_in: '3599' };
    return {
      status: 200,
      body: { ...about, ...(email && { email, email_verified: 'true' }), access_type: 'online' },
    };
  }
  if (method === 'GET' && path === '/oauth2/v3/userinfo') {
    const person = people.get(token('Bearer'));
    if (person === undefined) return { status: 401, body: { error: 'invalid_request' } };
    const { id, name, email, avatar_url } = person;
    return {
      status: 200,
      body: { sub: id, name, given_name: name, picture: avatar_url, email, email_verified: true },
    };
  }
  return { status: 404, body: { error: { code: 404 } } };
};
