import { eventTypeFilter, type AllStreamSubscription, type KurrentDBClient } from '@kurrent/kurrentdb-client';
import { Backoff } from '../../../lib/async/retry';
import { pause, Signal } from '../../../lib/async/signal';
import type { Logger } from '../../log/port';
import { ended } from '../../active-set';
import { comparePositions, formatPosition, fromPosition, toEvent, typesPattern } from './events';
import { reason } from './errors';
import type { KurrentLink } from './link';
import { watchForStall } from './stall';
import { typeFilter } from '../port';
import type { EventBatch, EventFilter, Position, StoredEvent, SubscribeOptions, Subscription } from '../port';

export interface KurrentTailOptions {
  link: KurrentLink;
  log: Logger | undefined;
  subscribe: SubscribeOptions;
  batch_size: number;
  /** All events stored so far, in pages. */
  readAll(after: Position | null, filter: EventFilter, batch_size: number): AsyncIterable<EventBatch>;
  /** Position of the newest event on the leader. */
  head(): Promise<Position | null>;
  /** See {@link watchForStall}. */
  stalled_after_ms: number;
  onBatch(batch: EventBatch): Promise<void>;
}

/** An event, or a position up to which nothing else matched. */
type Arrival = { event: StoredEvent } | { checkpoint: Position };

/** Events that the server searches before it reports a position although none of them matched. */
const SEARCH_WINDOW = 1000;

/**
 * Tail that runs until it is stopped: first the pages up to the head, then a live subscription to every domain event;
 * events of other types are skipped here. Each event carries a position, so that a reader who waits for a position
 * never waits for the next matching event, and the server need not report one for each of its own events. A lost
 * connection is retried, an error of the receiver ends the tail.
 */
export class KurrentTail implements Subscription {
  readonly done: Promise<void>;
  private readonly filter: EventFilter;
  private after: Position | null;
  private readonly backoff = new Backoff({ first_ms: 100, most_ms: 5000 });
  private readonly stopping = new AbortController();

  constructor(private readonly options: KurrentTailOptions) {
    const { types, after } = options.subscribe;
    this.filter = types ? { types } : {};
    this.after = after;
    this.done = this.run();
    // The owner may await `done` only when it stops the tail: an early rejection must not end the process.
    this.done.catch(() => undefined);
  }

  stop(): Promise<void> {
    return ended(this.stopping, this.done);
  }

  private get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  private async run(): Promise<void> {
    const { link, log } = this.options;
    while (!this.stopped) {
      let client: KurrentDBClient | undefined;
      try {
        client = link.client();
        const pages = this.options.readAll(this.after, this.filter, this.options.batch_size);
        for await (const batch of pages) {
          if (this.stopped) return;
          await this.deliver(batch);
        }
        // Reads of the pages may have replaced the client.
        client = link.client();
        await this.live(client);
      } catch (error) {
        if (error instanceof ReceiverFailed) throw error.cause;
        if (this.stopped) return;
        const wait_ms = this.backoff.next();
        const facts = { reason: reason(error), failures: this.backoff.failures, after: this.after };
        log?.warn(facts, 'event tail lost its event store, trying again');
        if (client) link.renew(client, error);
        await pause(wait_ms, this.stopping.signal);
      }
    }
  }

  private async deliver(batch: EventBatch): Promise<void> {
    try {
      await this.options.onBatch(batch);
    } catch (error) {
      throw new ReceiverFailed(error);
    }
    this.after = batch.position;
    const { failures } = this.backoff;
    if (failures > 0) this.options.log?.info({ failures }, 'event tail reads again');
    this.backoff.reset();
  }

  /** Follows the log until the tail is stopped. @throws the error or end of the subscription */
  private async live(client: KurrentDBClient): Promise<void> {
    const { link, batch_size, head, stalled_after_ms } = this.options;
    const feed = new LiveFeed(link, client, this.after, this.filter, batch_size * 2);
    const end = () => feed.end();
    this.stopping.signal.addEventListener('abort', end);
    const unwatch = watchForStall({
      every_ms: stalled_after_ms,
      arrived: () => feed.arrivedAt(),
      head,
      fail: (error) => feed.fail(error),
    });
    try {
      while (!this.stopped) {
        const arrivals = await feed.take(batch_size);
        if (this.stopped) return;
        const events = arrivals.flatMap((arrival) => ('event' in arrival ? [arrival.event] : []));
        const last = arrivals[arrivals.length - 1]!;
        await this.deliver({ events, position: 'event' in last ? last.event.position : last.checkpoint });
      }
    } finally {
      unwatch();
      this.stopping.signal.removeEventListener('abort', end);
      await feed.close();
    }
  }
}

/** Wraps an error of `onBatch`, to distinguish it from an error of the engine. */
class ReceiverFailed extends Error {
  constructor(cause: unknown) {
    super('the receiver failed', { cause });
  }
}

/**
 * Subscription as a bounded queue in log order: merges events and checkpoints, which the client delivers by two ways.
 */
class LiveFeed {
  private readonly arrivals: Arrival[] = [];
  private readonly wanted: (type: string) => boolean;
  private readonly subscription: AllStreamSubscription;
  private failure: unknown;
  private ended = false;
  private newest: Position | null;
  private readonly arrived = new Signal();
  private readonly taken = new Signal();

  constructor(
    private readonly link: KurrentLink,
    private readonly client: KurrentDBClient,
    after: Position | null,
    filter: EventFilter,
    private readonly bound: number,
  ) {
    link.hold(client);
    this.newest = after;
    this.wanted = typeFilter(filter);
    this.subscription = client.subscribeToAll({
      // A follower that is behind the pages would begin before their end.
      requiresLeader: true,
      fromPosition: fromPosition(after),
      filter: eventTypeFilter({
        regex: typesPattern({}),
        maxSearchWindow: SEARCH_WINDOW,
        checkpointInterval: 1,
        checkpointReached: (_, at) => this.checkpoint(formatPosition(at)),
      }),
    });
    this.subscription.on('readable', () => this.pull(this.bound));
    this.subscription.on('error', (error) => this.fail(error));
    this.subscription.on('end', () => this.fail(new Error('the subscription was ended by the server')));
    this.subscription.on('close', () => this.fail(new Error('the subscription was closed')));
  }

  /**
   * Takes at least one arrival, in log order; none when the feed was ended. Consecutive positions count as one.
   */
  async take(limit: number): Promise<Arrival[]> {
    while (this.arrivals.length === 0 && !this.ended) {
      if (this.failure !== undefined) throw this.failure;
      await this.arrived.wait(Infinity);
    }
    const taken = this.arrivals.splice(0, limit);
    this.pull(this.bound);
    this.taken.raise();
    return taken;
  }

  /** Position of the last arrival; undefined while the queue is full. */
  arrivedAt(): Position | null | undefined {
    return this.arrivals.length < this.bound ? this.newest : undefined;
  }

  end(): void {
    this.ended = true;
    this.arrived.raise();
    this.taken.raise();
  }

  async close(): Promise<void> {
    this.end();
    this.subscription.on('error', () => undefined);
    // The promise may reject, because the stream was perhaps never opened.
    await this.subscription.unsubscribe().catch(() => undefined);
    this.subscription.destroy();
    this.link.release(this.client);
  }

  fail(error: unknown): void {
    this.failure ??= error;
    this.arrived.raise();
    this.taken.raise();
  }

  private push(arrival: Arrival): void {
    this.arrivals.push(arrival);
    this.newest = 'event' in arrival ? arrival.event.position : arrival.checkpoint;
  }

  /** Records that no wanted event before `position` is missing in the queue. */
  private passed(position: Position): void {
    const last = this.arrivals[this.arrivals.length - 1];
    if (last && 'checkpoint' in last) last.checkpoint = this.newest = position;
    else if (!(last && last.event.position === position)) this.push({ checkpoint: position });
  }

  /** Moves events that the client has read into the queue, up to `bound`. */
  private pull(bound: number): void {
    try {
      while (this.arrivals.length < bound) {
        const resolved = this.subscription.read() as Parameters<typeof toEvent>[0] | null;
        if (resolved === null) break;
        const event = toEvent(resolved);
        if (!event) continue;
        if (this.wanted(event.type)) this.push({ event });
        else this.passed(event.position);
      }
    } catch (error) {
      this.fail(error);
    }
    if (this.arrivals.length > 0) this.arrived.raise();
  }

  /**
   * Called between two events of the client's stream, which awaits the result: queues the events before the checkpoint,
   * then the checkpoint.
   */
  private async checkpoint(position: Position): Promise<void> {
    this.pull(Infinity);
    // During catch-up the server sends `<commit>/0`, which lies before the event at that commit.
    if (this.newest === null || comparePositions(position, this.newest) > 0) this.passed(position);
    this.arrived.raise();
    while (this.arrivals.length > this.bound && !this.ended && this.failure === undefined)
      await this.taken.wait(Infinity);
  }
}
