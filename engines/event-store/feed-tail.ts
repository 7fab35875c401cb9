import { retry } from '../../kernel/retry';
import type { Signal } from '../../kernel/signal';
import type { Logger } from '../log/port';
import type { EventBatch, EventStore, Position, StoredEvent, Subscription } from './port';

export interface FeedOptions {
  log?: Logger;
  /**
   * Bytes of events kept for subscribers that are slower than the log; who needs older ones reads them apart. Default 8
   * MiB.
   */
  keep_bytes?: number;
}

const KEEP_BYTES = 8 * 1024 * 1024;
/** Members of an event beside its data: ids, names, metadata. */
const ENVELOPE_BYTES = 512;
/** A subscriber is told so late at most that only events of other types went by. */
const PASSED_BY_MS = 25;
/** Between tries while the engine is away. */
export const PAUSES = { first_ms: 100, most_ms: 5000 };

/** Who takes the pages of a tail. */
export interface FeedReader {
  /** Number of the page that it takes next; while it reads apart, of the first one that it will not find there. */
  next: number;
  /** Raised when there may be another page. */
  readonly news: Signal;
  wants(types: ReadonlySet<string>): boolean;
}

/** What one look of the tail brought. */
interface Page {
  events: readonly StoredEvent[];
  types: ReadonlySet<string>;
  position: Position;
  bytes: number;
}

/** One life of the tail: from the head at its start until it ends or its engine fails for good. */
export class FeedTail {
  /** Resolves when subscribers can join, or when nobody ever will. */
  readonly started: Promise<void>;
  private readonly readers = new Set<FeedReader>();
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
  join(reader: FeedReader, at: Position | null): number | undefined {
    this.readers.add(reader);
    reader.next = this.gone + this.pages.length;
    if (!this.notBefore(at, this.base)) return undefined;
    const first = this.pages.findIndex(({ position }) => !this.notBefore(at, position));
    return first === -1 ? reader.next : this.gone + first;
  }

  /**
   * Compares the newest kept event from page `next` on with the store. Ends this tail when the store has another event
   * in its place: it lost the end of what was read from it. False when the store cannot be asked.
   */
  async verify(next: number): Promise<boolean> {
    const kept = this.from(next)
      ?.flatMap(({ events }) => events.slice(-1))
      .at(-1);
    if (!kept) return true;
    const { id, stream, revision, position } = kept;
    let stored: StoredEvent | undefined;
    try {
      [stored] = await this.store.read(stream, revision, { limit: 1 });
    } catch (error) {
      this.options.log?.warn({ err: error, position }, 'events of the feed cannot be verified, reading them apart');
      return false;
    }
    if (stored?.id === id && stored.position === position) return true;
    this.options.log?.error({ position, stream }, 'the event store has lost events; the feed begins again');
    this.fail(new Error(`the event store has lost event ${id} at ${position}`));
    await this.tail?.stop();
    return true;
  }

  leave(reader: FeedReader): void {
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
