import { Backoff } from '../../kernel/retry';
import { pause, Signal } from '../../kernel/signal';
import type { Logger } from '../../engines/log/port';
import type { Wakeups } from '../../engines/wakeups/port';
import type { StoredMessage } from './envelopes';
import type { RealtimeMetrics } from './metrics';
import type { Outbox, PageBounds } from './outbox';

const POLL_MS = 1_000;
const PAGE: PageBounds = { messages: 1_000, bytes: 8 * 1024 * 1024 };
const RETRY = { first_ms: 50, most_ms: 2_000 } as const;

export interface TailDeps {
  outbox: Outbox;
  wakeups: Wakeups;
  log: Logger;
  metrics: RealtimeMetrics;
  deliver(message: StoredMessage): void;
  /** True while no channel has a place here: then only where the outbox ends is of interest. */
  unheard(): boolean;
  /** True while the fan-out has more than enough to write. */
  saturated(): boolean;
}

/**
 * Reads the outbox of all channels once per node, from its head at the start on; while no channel has subscribers here,
 * only its end. Woken by the projector; polls each second in case a wake-up was lost. A database that goes away is
 * waited for, and reading goes on after the last id: nothing is lost or repeated.
 */
export class Tail {
  private after = -1;
  private readonly stopping = new AbortController();
  private readonly news = new Signal();
  /** Settles when the starting point is known: messages committed after that are delivered. */
  readonly ready: Promise<void>;
  private started: () => void = () => undefined;
  private readonly end_wakeups: () => void;
  private readonly done: Promise<void>;

  constructor(private readonly deps: TailDeps) {
    this.end_wakeups = deps.wakeups.on('outbox', this.news.raise);
    this.ready = new Promise((resolve) => (this.started = resolve));
    this.done = this.run();
  }

  private async run(): Promise<void> {
    const { news } = this;
    const { signal: stop } = this.stopping;
    const backoff = new Backoff(RETRY);
    while (!stop.aborted) {
      try {
        if (this.after < 0) {
          this.after = await this.deps.outbox.newest();
          this.started();
        }
        news.clear();
        const at_end = this.deps.unheard() ? await this.skip() : await this.read();
        backoff.reset();
        if (at_end) await news.wait(POLL_MS, stop);
        while (this.deps.saturated() && !stop.aborted) await pause(5, stop);
      } catch (error) {
        if (stop.aborted) return;
        this.deps.log.warn({ err: error, after: this.after }, 'the outbox cannot be read; trying again');
        await pause(backoff.next(), stop);
      }
    }
  }

  /** True when nothing is left to read. */
  private async read(): Promise<boolean> {
    const rows = await this.deps.outbox.tail(this.after, PAGE);
    const bytes = rows.length > 0 ? this.deliverAll(rows) : 0;
    return rows.length < PAGE.messages && bytes < PAGE.bytes;
  }

  /**
   * Passes by what nobody here listens to. A channel that came meanwhile may have read its head before the end was
   * asked for: then the rows in between are its own, and are read after all.
   */
  private async skip(): Promise<boolean> {
    const newest = await this.deps.outbox.newest();
    if (!this.deps.unheard()) return this.read();
    this.after = newest;
    return true;
  }

  /** Returns the bytes of what it delivered. */
  private deliverAll(rows: StoredMessage[]): number {
    let bytes = 0;
    for (const row of rows) {
      bytes += Buffer.byteLength(row.data);
      // The place moves first: a row that cannot be delivered must not be read for ever.
      this.after = row.id;
      try {
        this.deps.deliver(row);
      } catch (error) {
        this.deps.log.error({ err: error, channel: row.channel, seq: row.seq }, 'a message could not be delivered');
      }
    }
    this.deps.metrics.tail_rows.inc(rows.length);
    const lag = (Date.now() - Date.parse(rows[rows.length - 1]!.created_at)) / 1000;
    this.deps.metrics.tail_lag.set(Math.max(0, lag));
    return bytes;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.end_wakeups();
    await this.done;
  }
}
