import { Backoff, retry } from '../../kernel/retry';
import { pause, Signal } from '../../kernel/signal';
import type { Logger } from '../log/port';
import { ended } from '../running';
import { delegated } from './delegated';
import { typeFilter } from './port';
import type { EventBatch, EventStore, Position, StoredEvent, SubscribeOptions, Subscription } from './port';

export interface FeedOptions {
  log?: Logger;
  /**
   * Bytes of events kept for subscribers that are slower than the log; who needs older ones reads them apart. Default 8
   * MiB.
   */
  keep_bytes?: number;
}

type Receive = (batch: EventBatch) => Promise<void>;

const DEFAULT_BATCH = 500;
const KEEP_BYTES = 8 * 1024 * 1024;
/** Members of an event beside its data: ids, names, metadata. */
const ENVELOPE_BYTES = 512;
/** A subscriber is told so late at most that only events of other types went by. */
const PASSED_BY_MS = 25;
const PAUSES = { first_ms: 100, most_ms: 5000 };

/**
 * Any event store, with one tail for all subscribers of this process: what is appended is read once, and handed to each
 * subscriber that asked for its type. One that is behind reads apart, at its own pace, until it meets the tail; one
 * that is slow holds up no other. Design §7.
 */
export function fedEventStore(store: EventStore, options: FeedOptions = {}): EventStore {
  const readers = new Set<Reader>();
  let feed: Feed | undefined;
  let closed = false;
  return {
    ...delegated(store),
    subscribe(subscribe, onBatch) {
      if (closed) throw new Error('the event store is closed');
      if (feed === undefined || feed.over) feed = new Feed(store, options);
      const reader = new Reader(feed, store, subscribe, onBatch, options.log);
      readers.add(reader);
      const forget = () => {
        readers.delete(reader);
        if (readers.size === 0) void feed?.end();
      };
      reader.done.then(forget, forget);
      return reader;
    },
    async close() {
      closed = true;
      await Promise.all([...readers].map((reader) => reader.stop()));
      await feed?.end();
      await store.close();
    },
  };
}

/** What one look of the tail brought. */
interface Page {
  events: readonly StoredEvent[];
  types: ReadonlySet<string>;
  position: Position;
  bytes: number;
}

/** One life of the tail: from the head at its start until it ends or its engine fails for good. */
class Feed {
  /** Resolves when subscribers can join, or when nobody ever will. */
  readonly started: Promise<void>;
  private readonly readers = new Set<Reader>();
  private readonly keep_bytes: number;
  private pages: Page[] = [];
  private bytes = 0;
  /** How many pages came before the first that is kept, and where the last of them ended. */
  private gone = 0;
  private base: Position | null = null;
  private tail: Subscription | undefined;
  private failure: unknown;
  private passed_by: NodeJS.Timeout | undefined;
  private readonly ending = new AbortController();

  constructor(
    private readonly store: EventStore,
    private readonly options: FeedOptions,
  ) {
    this.keep_bytes = options.keep_bytes ?? KEEP_BYTES;
    this.started = this.begin();
  }

  get over(): boolean {
    return this.ending.signal.aborted;
  }

  private async begin(): Promise<void> {
    const { signal } = this.ending;
    const { log } = this.options;
    try {
      this.base = await retry(() => this.store.head(), {
        ...PAUSES,
        signal,
        passing: () => true,
        onFailure: (error, failures) =>
          log?.warn({ err: error, failures }, 'the event feed cannot find the end of the log, trying again'),
      });
    } catch {
      // Only its end ends the tries.
      return;
    }
    if (this.over) return;
    this.tail = this.store.subscribe({ after: this.base }, async (batch) => this.push(batch));
    this.tail.done.catch((error: unknown) => this.fail(error));
  }

  /**
   * Number of the first page after `at`; undefined when that is no longer kept. What comes from now on is kept for the
   * reader meanwhile, so that it can join when it has read apart up to here.
   */
  join(reader: Reader, at: Position | null): number | undefined {
    this.readers.add(reader);
    reader.next = this.gone + this.pages.length;
    if (!this.notBefore(at, this.base)) return undefined;
    const first = this.pages.findIndex(({ position }) => !this.notBefore(at, position));
    return first === -1 ? reader.next : this.gone + first;
  }

  leave(reader: Reader): void {
    this.readers.delete(reader);
  }

  /**
   * The pages from number `next` on; undefined when the first of them is no longer kept. @throws what ended the tail
   */
  from(next: number): readonly Page[] | undefined {
    if (this.failure !== undefined) throw this.failure;
    return next < this.gone ? undefined : this.pages.slice(next - this.gone);
  }

  notBefore(at: Position | null, other: Position | null): boolean {
    return other === null || (at !== null && this.store.compare(at, other) >= 0);
  }

  async end(): Promise<void> {
    this.ending.abort();
    clearTimeout(this.passed_by);
    await this.started;
    await this.tail?.stop();
  }

  private fail(error: unknown): void {
    this.failure = error;
    this.ending.abort();
    for (const reader of this.readers) reader.news.raise();
  }

  private push({ events, position }: EventBatch): void {
    const bytes = events.reduce((sum, { data }) => sum + ENVELOPE_BYTES + JSON.stringify(data).length, 0);
    const page: Page = { events, types: new Set(events.map(({ type }) => type)), position, bytes };
    this.pages.push(page);
    this.bytes += bytes;
    this.drop();
    for (const reader of this.readers) if (reader.wants(page.types)) reader.news.raise();
    this.passed_by ??= setTimeout(() => {
      this.passed_by = undefined;
      for (const reader of this.readers) reader.news.raise();
    }, PASSED_BY_MS);
  }

  /**
   * Lets go of what every subscriber has, and of what is too much; never of the newest page, which nobody has seen yet.
   */
  private drop(): void {
    const needed = Math.min(...[...this.readers].map(({ next }) => next));
    while (this.pages.length > 1 && (this.gone < needed || this.bytes > this.keep_bytes)) {
      const { position, bytes } = this.pages.shift()!;
      this.bytes -= bytes;
      this.base = position;
      this.gone += 1;
    }
  }
}

/**
 * One subscriber: it reads apart until it has met the feed, and again whenever it has fallen behind what the feed
 * keeps.
 */
class Reader implements Subscription {
  readonly done: Promise<void>;
  /**
   * Number of the feed's page that it takes next; while it reads apart, of the first one that it will not find there.
   */
  next = 0;
  private readonly wanted: (type: string) => boolean;
  private readonly size: number;
  private at: Position | null;
  /** There may be another page. */
  readonly news = new Signal();
  private readonly stopping = new AbortController();

  constructor(
    private readonly feed: Feed,
    private readonly store: EventStore,
    private readonly options: SubscribeOptions,
    private readonly onBatch: Receive,
    private readonly log: Logger | undefined,
  ) {
    this.wanted = typeFilter(options);
    this.size = options.batch_size ?? DEFAULT_BATCH;
    this.at = options.after;
    this.done = this.run().finally(() => feed.leave(this));
    // The owner may look at `done` only when it stops the tail; an early rejection is kept for it, not thrown at the
    // process.
    this.done.catch(() => undefined);
  }

  stop(): Promise<void> {
    return ended(this.stopping, this.done);
  }

  wants(types: ReadonlySet<string>): boolean {
    for (const type of types) if (this.wanted(type)) return true;
    return false;
  }

  private get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  private async run(): Promise<void> {
    void this.feed.started.then(this.news.raise);
    await this.news.wait(Infinity, this.stopping.signal);
    while (!this.stopped) {
      const joined = this.feed.join(this, this.at);
      if (joined === undefined) {
        await this.catchUp();
        continue;
      }
      this.next = joined;
      await this.follow();
    }
  }

  /** Takes page after page until it is stopped or the feed no longer keeps the next one. */
  private async follow(): Promise<void> {
    while (!this.stopped) {
      this.news.clear();
      const pages = this.feed.from(this.next);
      if (pages === undefined) return;
      if (pages.length === 0) {
        await this.news.wait(Infinity, this.stopping.signal);
        continue;
      }
      this.next += pages.length;
      const from = this.at;
      const events = pages.flatMap((page) => (this.wants(page.types) ? page.events : []));
      const mine = events.filter(({ type, position }) => {
        return this.wanted(type) && !this.feed.notBefore(from, position);
      });
      await this.hand(mine, pages[pages.length - 1]!.position);
    }
  }

  /** Everything up to the head of the moment; an engine that is away is waited for. */
  private async catchUp(): Promise<void> {
    const backoff = new Backoff(PAUSES);
    while (!this.stopped) {
      const pages = this.store.readAll(this.at, this.options.types ? { types: this.options.types } : {});
      const iterator = pages[Symbol.asyncIterator]();
      for (;;) {
        let page: IteratorResult<EventBatch>;
        try {
          page = await iterator.next();
        } catch (error) {
          const pause_ms = backoff.next();
          const { failures } = backoff;
          this.log?.warn({ err: error, failures, after: this.at }, 'events cannot be read, trying again');
          await pause(pause_ms, this.stopping.signal);
          break;
        }
        if (this.stopped) return void (await iterator.return?.(undefined));
        if (page.done) return;
        backoff.reset();
        await this.hand(page.value.events, page.value.position);
        if (this.stopped) return void (await iterator.return?.(undefined));
      }
    }
  }

  /** In batches of the size asked for; the last one says how far everything was seen. */
  private async hand(events: readonly StoredEvent[], position: Position): Promise<void> {
    let from = 0;
    do {
      const batch = events.slice(from, from + this.size);
      from += this.size;
      const end = from >= events.length ? position : batch[batch.length - 1]!.position;
      await this.onBatch({ events: batch, position: end });
      this.at = end;
    } while (from < events.length && !this.stopped);
  }
}
