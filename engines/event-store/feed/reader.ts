import { Backoff } from '../../../lib/async/retry';
import { pause, Signal } from '../../../lib/async/signal';
import type { Logger } from '../../log/port';
import { ended } from '../../active-set';
import { type FeedReader, type FeedTail, PAUSES } from './tail';
import { typeFilter } from '../port';
import type { EventBatch, EventStore, Position, StoredEvent, SubscribeOptions, Subscription } from '../port';

type Receive = (batch: EventBatch) => Promise<void>;

const DEFAULT_BATCH = 500;

/**
 * Subscriber of a feed: reads the store itself until it can join the feed, and again whenever it falls behind the pages
 * that the feed keeps.
 */
export class Reader implements FeedReader, Subscription {
  readonly done: Promise<void>;
  next = 0;
  private readonly wanted: (type: string) => boolean;
  private readonly size: number;
  private at: Position | null;
  readonly news = new Signal();
  private readonly stopping = new AbortController();

  constructor(
    private readonly feed: FeedTail,
    private readonly store: EventStore,
    private readonly options: SubscribeOptions,
    private readonly onBatch: Receive,
    private readonly log: Logger | undefined,
  ) {
    this.wanted = typeFilter(options);
    this.size = options.batch_size ?? DEFAULT_BATCH;
    this.at = options.after;
    this.done = this.run().finally(() => feed.leave(this));
    // The owner may await `done` only when it stops the tail: an early rejection must not end the process.
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
      if (await this.feed.verify(joined)) await this.follow();
      else await this.catchUp();
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

  /** Reads the store up to its present head; waits for an unavailable engine. */
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

  /** Passes events on in batches of the configured size; the position of the last batch is `position`. */
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
