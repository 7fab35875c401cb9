import { type TokenSource, withToken } from '../../services/connections/with-token';
import { HttpFailed } from '../../vendors/http/port';
import { COSTS, isUsedUp, YoutubeRefused, type YoutubeDataApi } from '../../vendors/youtube/port';
import { objectsAt } from '../../lib/json/digits';
import { memberText } from '../../lib/json/members';
import { readTime } from '../../lib/time/vendor-times';
import type { Json } from '../../lib/json/json';
import { Backoff } from '../../lib/async/retry';
import { pause } from '../../lib/async/signal';
import { type Adapter, type AdapterSession, ConnectionRefused, type Link } from '../runtime/connection/adapter';
import { idText, member, numberOf } from '../runtime/webhook/webhook';
import { normaliseYoutubeChat } from './chat';
import type { YoutubeQuota } from './quota';

export interface YoutubeAdapterDeps {
  api: Pick<YoutubeDataApi, 'chatPage' | 'chatStream'>;
  quota: YoutubeQuota;
  /** Chats of the connection's broadcasts on air, from the polls of live channels. */
  chatsOf(connection: Link['connection']): Promise<readonly string[]>;
  timings?: Partial<YoutubeTimings>;
}

export interface YoutubeTimings {
  /** Interval of reading the chats on air, which costs no quota at YouTube. */
  look_ms: number;
  /** Milliseconds of silence after which a stream is opened again: a dead connection is silent, too. */
  silence_ms: number;
  /** Time that pages are read after a refusal of the server stream. */
  pages_for_ms: number;
  /** Minimum time between two pages, whatever the vendor requires, and between two openings of a stream. */
  page_ms: number;
  retry: { first_ms: number; most_ms: number };
}

const TIMINGS: YoutubeTimings = {
  look_ms: 2_000,
  silence_ms: 300_000,
  pages_for_ms: 600_000,
  page_ms: 1_000,
  retry: { first_ms: 1_000, most_ms: 60_000 },
};

/** Refusals that mean the end of a chat. */
const OVER = new Set(['liveChatEnded', 'liveChatDisabled', 'liveChatNotFound']);
const RATE = new Set(['rateLimitExceeded', 'userRateLimitExceeded']);
/** Pause between two pages without a value of the vendor; spec extra-facts §28. */
const UNASKED_PAGE_MS = 3_000;
/** Interval at which a connection without a broadcast checks the quota. */
const QUOTA_LOOK_MS = 30_000;
/** Delay by its share of the quota from which on a chat's account is notified. */
const SLOW_MS = 30_000;
/** Maximum chats read, and maximum ended chats remembered; more than a channel has at once. */
const MAX_KEPT = 8;
/** Longest kept token of a page, in characters; YouTube's have some 200. */
const MAX_TOKEN = 2_000;
/** Longest time between two pages that the vendor may require. */
const MAX_ASKED_MS = 60_000;

interface YoutubeSession extends AdapterSession {
  end(): void;
}

/**
 * YouTube's live chat: each chat on air is read as a server stream, or by pages where the stream is refused, from the
 * last stored page. Waits while the day's quota is used up, and reports it in the status.
 */
export function createYoutubeAdapter(deps: YoutubeAdapterDeps): Adapter<YoutubeSession> {
  const open = async (link: Link, state: Json): Promise<YoutubeSession> => {
    const ending = new AbortController();
    const signal = AbortSignal.any([link.signal, ending.signal]);
    const reading = new ChannelReading(link, { ...deps, timings: { ...TIMINGS, ...deps.timings } }, signal, state);
    return { ended: reading.run(), end: () => ending.abort() };
  };
  return {
    vendor: 'youtube',
    connect: (link) => open(link, null),
    resume: open,
    normalise: normaliseYoutubeChat,
    async stop(session) {
      session.end();
      await session.ended.catch(() => undefined);
    },
  };
}

type Deps = YoutubeAdapterDeps & { timings: YoutubeTimings };

/** Reads all chats of one channel. */
class ChannelReading {
  /** The page to continue from, by chat. */
  private readonly pages: Map<string, string | null>;
  private readonly over = new Set<string>();
  private readonly readers = new Map<string, Promise<void>>();
  private readonly token: TokenSource;
  private readonly client_id: string;
  private failed: { error: unknown } | null = null;
  private shown = '';

  constructor(
    private readonly link: Link,
    private readonly deps: Deps,
    private readonly signal: AbortSignal,
    state: Json,
  ) {
    this.pages = new Map(pagesIn(state));
    this.token = (refused) => link.token(refused);
    // The quota belongs to the app that the token was issued to.
    this.client_id = link.connection.client_id ?? '';
  }

  async run(): Promise<void> {
    this.keep();
    let looked_at = -Infinity;
    while (!this.signal.aborted) {
      if (this.failed !== null) throw this.failed.error;
      if (this.readers.size === 0 && performance.now() - looked_at > QUOTA_LOOK_MS) {
        looked_at = performance.now();
        await this.showIdle();
      }
      for (const chat of await this.deps.chatsOf(this.link.connection)) {
        if (this.readers.has(chat) || this.over.has(chat) || this.readers.size >= MAX_KEPT) continue;
        const reader = this.read(chat)
          .catch((error: unknown) => {
            if (!this.signal.aborted) this.failed ??= { error };
          })
          .finally(() => this.readers.delete(chat));
        this.readers.set(chat, reader);
      }
      await pause(this.deps.timings.look_ms, this.signal);
    }
    await Promise.all(this.readers.values());
  }

  /**
   * Reads a chat until it is over.
   * @throws ConnectionRefused, and errors that no retry repairs
   */
  private async read(chat: string): Promise<void> {
    const { timings } = this.deps;
    const backoff = new Backoff(timings.retry);
    let pages_until = 0;
    while (!this.signal.aborted) {
      try {
        const by_pages = Date.now() < pages_until;
        if (!(await this.paid())) return;
        if (by_pages ? await this.readPage(chat) : await this.readStream(chat)) return this.finish(chat);
        backoff.reset();
      } catch (error) {
        if (this.signal.aborted) return;
        if (error instanceof ConnectionRefused) throw error;
        const { status, reason, retry_after_ms } = refusalOf(error);
        if (reason !== null && OVER.has(reason)) return this.finish(chat);
        if (isUsedUp(reason)) {
          await this.deps.quota.exhausted(this.client_id);
          continue;
        }
        if (status === 404 && Date.now() < pages_until) return this.finish(chat);
        // The method is missing, or this project may not call it: pages are available to everybody.
        if (isNoStream(status, reason) && Date.now() >= pages_until) {
          pages_until = Date.now() + timings.pages_for_ms;
          continue;
        }
        const wait_ms = Math.max(retry_after_ms ?? 0, backoff.next());
        this.show('retrying', `YouTube did not answer as it should (${reason ?? status ?? 'no answer'}).`);
        await pause(wait_ms, this.signal);
      }
    }
  }

  /** Reads the stream. True when the chat is over; false when the stream ended otherwise. */
  private async readStream(chat: string): Promise<boolean> {
    const opened_at = performance.now();
    const silence = new AbortController();
    const signal = AbortSignal.any([this.signal, silence.signal]);
    const quiet = () => silence.abort(new Error('the stream was silent'));
    let timer = setTimeout(quiet, this.deps.timings.silence_ms);
    try {
      const opened = await this.withToken((token) => this.opened(token, chat, signal));
      for await (const page of opened) {
        clearTimeout(timer);
        timer = setTimeout(quiet, this.deps.timings.silence_ms);
        this.show('connected', 'Reading the live chat.');
        if (await this.take(chat, page)) return true;
      }
      // A server may close after each page.
      await pause(opened_at + this.deps.timings.page_ms - performance.now(), this.signal);
      return false;
    } catch (error) {
      if (silence.signal.aborted && !this.signal.aborted) return false;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the stream's pages after the first has arrived, because a refused token fails before it. */
  private async opened(token: string, chat: string, signal: AbortSignal): Promise<AsyncIterable<string>> {
    const pages = this.deps.api.chatStream(token, chat, this.pages.get(chat) ?? null, signal);
    const first = await pages.next();
    return (async function* () {
      if (first.done) return;
      yield first.value;
      yield* pages;
    })();
  }

  /** Reads a page. True when the chat is over; otherwise it has waited as long as the vendor requires. */
  private async readPage(chat: string): Promise<boolean> {
    const page = await this.withToken((token) => this.deps.api.chatPage(token, chat, this.pages.get(chat) ?? null));
    this.show('connected', 'Reading the live chat, page by page.');
    if (await this.take(chat, page)) return true;
    const asked = numberOf(member(JSON.parse(page), 'pollingIntervalMillis'));
    const asked_ms = Number.isFinite(asked) ? Math.min(asked, MAX_ASKED_MS) : UNASKED_PAGE_MS;
    await pause(Math.max(this.deps.timings.page_ms, asked_ms), this.signal);
    return false;
  }

  /**
   * Stores the items of a page, and only then moves to the next page. True when the page reports the end of the chat.
   */
  private async take(chat: string, page: string): Promise<boolean> {
    const received_at = Date.now();
    this.link.heard(received_at);
    const head: unknown = JSON.parse(page);
    const items = objectsAt(page, ['items']);
    const poll = memberText(page, ['activePollItem']);
    if (poll?.startsWith('{')) items.push(poll);
    await Promise.all(items.map((text) => this.link.deliver({ text, received_at })));
    await this.link.drained();
    const next = member(head, 'nextPageToken');
    if (typeof next === 'string' && next.length <= MAX_TOKEN && next !== this.pages.get(chat)) {
      this.pages.set(chat, next);
      this.keep();
    }
    return readTime(member(head, 'offlineAt')) !== null || hasEnd(member(head, 'items'));
  }

  /** Waits until this connection's share of the quota covers a call. False when the connection is given up. */
  private async paid(): Promise<boolean> {
    const { connection } = this.link;
    while (!this.signal.aborted) {
      const asked = await this.deps.quota.take(this.client_id, connection.connection_id, COSTS.chat);
      if (asked.granted) return true;
      if (asked.exhausted) {
        this.showUsedUp(asked.wait_ms);
      } else if (asked.wait_ms > SLOW_MS) {
        this.show('degraded', 'The chat is read more slowly, so that the YouTube quota lasts through the day.');
      }
      // The quota may be raised meanwhile, or another connection may release its share.
      await pause(Math.min(asked.wait_ms, 60_000), this.signal);
    }
    return false;
  }

  private withToken<T>(call: (token: string) => Promise<T>): Promise<T> {
    return withToken(this.token, call);
  }

  /** Reports the used-up quota also while idle, because without quota no broadcast is found, either. */
  private async showIdle(): Promise<void> {
    const wait_ms = await this.deps.quota.usedUp(this.client_id);
    if (wait_ms === null) this.show('connected', 'Waiting for a broadcast.');
    else this.showUsedUp(wait_ms);
  }

  private showUsedUp(wait_ms: number): void {
    const at = new Date(Date.now() + wait_ms).toISOString().slice(0, 16);
    this.show('degraded', `The day’s YouTube quota is used up; it goes on at ${at}Z.`);
  }

  private finish(chat: string): void {
    this.over.add(chat);
    this.pages.delete(chat);
    this.show('connected', 'Waiting for a broadcast.');
    if (this.over.size > MAX_KEPT) this.over.delete(this.over.values().next().value!);
  }

  private keep(): void {
    const kept = [...this.pages].slice(-MAX_KEPT);
    this.link.keep({ pages: Object.fromEntries(kept) });
  }

  private show(status: 'connected' | 'degraded' | 'retrying', detail: string): void {
    if (detail === this.shown) return;
    this.shown = detail;
    this.link.status(status, detail);
  }
}

/** Whether one of these items is the end of its chat, by its type: viewers write the same word in their texts. */
const hasEnd = (items: unknown): boolean =>
  Array.isArray(items) && items.some((item) => member(item, 'snippet', 'type') === 'chatEndedEvent');

/** Tokens of pages in a kept state, by chat. */
function pagesIn(state: Json): [string, string | null][] {
  const pages = member(state, 'pages');
  if (typeof pages !== 'object' || pages === null) return [];
  return Object.entries(pages)
    .slice(-MAX_KEPT)
    .map(([chat, page]) => [chat, idText(page)]);
}

function refusalOf(error: unknown): { status: number | null; reason: string | null; retry_after_ms?: number } {
  if (error instanceof YoutubeRefused) return error;
  if (error instanceof HttpFailed) return { ...error, reason: null };
  return { status: null, reason: null };
}

const isNoStream = (status: number | null, reason: string | null): boolean =>
  status !== null && [400, 403, 404, 405, 501].includes(status) && (reason === null || !RATE.has(reason));
