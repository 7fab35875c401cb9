import { Backoff } from '../../lib/async/retry';
import { pause, Signal } from '../../lib/async/signal';
import type { Logger } from '../log/port';
import { ended } from '../active-set';
import type { Wakeups } from '../wakeups/port';
import type { EventBatch, Subscription } from './port';

export interface TailOptions {
  /** Position to read after; null is the beginning. */
  after: string | null;
  wakeups: Wakeups;
  log: Logger | undefined;
  /** Milliseconds between polls without a wake-up; varied by a quarter. */
  poll_ms: number;
  /**
   * Reads a page in commit order; undefined without new events. `end` is true when the page reached the head.
   */
  fetch(after: string | null): Promise<{ batch: EventBatch; end: boolean } | undefined>;
  onBatch(batch: EventBatch): Promise<void>;
}

/** Tail that runs until it is stopped: errors of the engine are retried, an error of the receiver ends it. */
export class Tail implements Subscription {
  readonly done: Promise<void>;
  private readonly stopping = new AbortController();
  private readonly news = new Signal();

  constructor(private readonly options: TailOptions) {
    const off = options.wakeups.on('events', this.news.raise);
    this.done = this.run().finally(off);
    // The owner may await `done` only when it stops the tail: an early rejection must not end the process.
    this.done.catch(() => undefined);
  }

  stop(): Promise<void> {
    return ended(this.stopping, this.done);
  }

  private async run(): Promise<void> {
    const { options, news } = this;
    const { signal: stop } = this.stopping;
    const backoff = new Backoff({ first_ms: 100, most_ms: 5000 });
    let after = options.after;
    while (!stop.aborted) {
      news.clear();
      let page: Awaited<ReturnType<TailOptions['fetch']>>;
      try {
        page = await options.fetch(after);
        if (backoff.failures > 0) options.log?.info({ failures: backoff.failures }, 'event tail reads again');
        backoff.reset();
      } catch (error) {
        const wait_ms = backoff.next();
        options.log?.warn({ err: error, failures: backoff.failures, after }, 'event tail cannot read, trying again');
        await pause(wait_ms, stop);
        continue;
      }
      if (stop.aborted) return;
      if (page) {
        await options.onBatch(page.batch);
        after = page.batch.position;
      }
      if (!page || page.end) await news.wait(options.poll_ms * (0.75 + Math.random() / 2), stop);
    }
  }
}
