import { retry } from '../../../lib/async/retry';
import type { Signal } from '../../../lib/async/signal';
import type { Logger } from '../../log/port';
import type { EventBatch, EventStore, Position, StoredEvent, Subscription } from '../port';

export interface FeedOptions {
  log?: Logger;
  /**
   * Bytes of events kept for subscribers that are slower than the log; a subscriber reads older events from the store
   * itself. Default 8 MiB.
   */
  keep_bytes?: number;
}

const KEEP_BYTES = 8 * 1024 * 1024;
/** Size of an event without its data: ids, names, metadata. */
const ENVELOPE_BYTES = 512;
/** Longest delay until a subscriber learns the position of events of other types. */
const PASSED_BY_MS = 25;
/** Most kept pages that a join compares with the store; a subscriber behind more of them reads the store itself. */
const MAX_VERIFIED = 16;
/** Pauses between tries while the engine is unavailable. */
export const PAUSES = { first_ms: 100, most_ms: 5000 };

/** Consumer of the pages of a tail. */
export interface FeedReader {
  /** Number of its next page; while it reads the store itself, of the first page after that reading. */
  next: number;
  /** Raised when there may be another page. */
  readonly news: Signal;
  wants(types: ReadonlySet<string>): boolean;
}

/** A batch of the tail. */
interface Page {
  events: readonly StoredEvent[];
  types: ReadonlySet<string>;
  position: Position;
  bytes: number;
}

/** Tail of the log from the head at its start until it is ended or its engine fails for good. */
export class FeedTail {
  /** Resolves when subscribers can join, or when the tail has ended before. */
  readonly started: Promise<void>;
  private readonly readers = new Set<FeedReader>();
  private readonly keep_bytes: number;
  private pages: Page[] = [];
  private bytes = 0;
  /** Number of dropped pages, and the position at the end of the last of them. */
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
      // The tail has ended: every failure is retried until then.
      return;
    }
    if (this.over) return;
    this.tail = this.store.subscribe({ after: this.base }, async (batch) => this.push(batch));
    this.tail.done.catch((error: unknown) => this.fail(error));
  }

  /**
   * Number of the first page after `at`; undefined when that page was dropped. Later pages are kept for the reader, so
   * that it can join after reading the store up to here.
   */
  join(reader: FeedReader, at: Position | null): number | undefined {
    this.readers.add(reader);
    reader.next = this.gone + this.pages.length;
    if (!this.notBefore(at, this.base)) return undefined;
    const first = this.pages.findIndex(({ position }) => !this.notBefore(at, position));
    return first === -1 ? reader.next : this.gone + first;
  }

  /**
   * Compares the last event of each kept page from `next` on with the store. Ends this tail when the store has another
   * event in its place: the store has lost the end of a page. False when the store cannot be read, or too many pages
   * are kept.
   */
  async verify(next: number): Promise<boolean> {
    const last = this.from(next)?.flatMap(({ events }) => events.slice(-1)) ?? [];
    if (last.length > MAX_VERIFIED) return false;
    for (const event of last) {
      try {
        if (await this.isStored(event)) continue;
      } catch (error) {
        const { position } = event;
        this.options.log?.warn({ err: error, position }, 'events of the feed cannot be verified, reading them apart');
        return false;
      }
      const { id, stream, position } = event;
      this.options.log?.error({ position, stream }, 'the event store has lost events; the feed begins again');
      this.fail(new Error(`the event store has lost event ${id} at ${position}`));
      await this.tail?.stop();
      return true;
    }
    return true;
  }

  private async isStored({ id, stream, revision, position }: StoredEvent): Promise<boolean> {
    const [stored] = await this.store.read(stream, revision, { limit: 1 });
    return stored?.id === id && stored.position === position;
  }

  leave(reader: FeedReader): void {
    this.readers.delete(reader);
  }

  /**
   * The pages from number `next` on; undefined when the first of them was dropped. @throws the error that ended the
   * tail
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
   * Drops pages that every subscriber has, or that exceed the bound; never the newest page, which no subscriber has
   * yet.
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
