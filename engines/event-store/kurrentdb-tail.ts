import { eventTypeFilter, type AllStreamSubscription, type KurrentDBClient } from '@kurrent/kurrentdb-client';
import { Backoff } from '../../kernel/retry';
import { pause, Signal } from '../../kernel/signal';
import type { Logger } from '../log/port';
import { ended } from '../running';
import { formatPosition, fromPosition, toEvent, typesPattern } from './kurrentdb-events';
import { reason } from './kurrentdb-errors';
import type { KurrentLink } from './kurrentdb-link';
import { watchForStall } from './kurrentdb-stall';
import { typeFilter } from './port';
import type { EventBatch, EventFilter, Position, StoredEvent, SubscribeOptions, Subscription } from './port';

export interface KurrentTailOptions {
  link: KurrentLink;
  log: Logger | undefined;
  subscribe: SubscribeOptions;
  batch_size: number;
  /** Everything that is there already, in pages. */
  readAll(after: Position | null, filter: EventFilter, batch_size: number): AsyncIterable<EventBatch>;
  /** The newest event of the node that leads. */
  head(): Promise<Position | null>;
  /** See {@link watchForStall}. */
  stalled_after_ms: number;
  onBatch(batch: EventBatch): Promise<void>;
}

/** An event, or a position up to which nothing else matched. */
type Arrival = { event: StoredEvent } | { checkpoint: Position };

/** Events that the server looks through before it tells a position although none of them was ours. */
const SEARCH_WINDOW = 1000;

/**
 * A tail that runs until it is stopped: first the pages up to the head, then a live subscription to every domain event,
 * of which those of other types are passed over here. Each of them tells a position, so that a reader who waits for a
 * position never waits for the next matching event, and the server need not tell one for each event of its own. A lost
 * link is waited out, an error of the receiver ends it.
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
    // The owner may look at `done` only when it stops the tail; an early rejection is kept for it, not thrown at the
    // process.
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

  /** Follows the log until the tail is stopped. @throws what broke the subscription, or that it ended */
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

/** What `onBatch` threw, told apart from what the engine threw. */
class ReceiverFailed extends Error {
  constructor(cause: unknown) {
    super('the receiver failed', { cause });
  }
}

/**
 * One subscription as a bounded queue in log order: events and checkpoints reach us by two ways of the client, and are
 * put in line here.
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
      // A node that has less than the pages came from would begin before them.
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
   * At least one arrival, in log order; none when the feed was ended. Positions that follow each other count as one.
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

  /** Position of what arrived last; undefined while there is no room for more. */
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
    // It waits for a stream that was perhaps never opened.
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

  /** Nothing that is wanted lies before `position` but what is in the line. */
  private passed(position: Position): void {
    const last = this.arrivals[this.arrivals.length - 1];
    if (last && 'checkpoint' in last) last.checkpoint = this.newest = position;
    else if (!(last && last.event.position === position)) this.push({ checkpoint: position });
  }

  /** What the client has read goes into the line, as far as there is room. */
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
   * Called between two events of the client's stream, which waits for it: first what lies before the checkpoint, then
   * the checkpoint.
   */
  private async checkpoint(position: Position): Promise<void> {
    this.pull(Infinity);
    this.passed(position);
    this.arrived.raise();
    while (this.arrivals.length > this.bound && !this.ended && this.failure === undefined)
      await this.taken.wait(Infinity);
  }
}
