import { Backoff } from '../../../lib/async/retry';
import { pause, Signal } from '../../../lib/async/signal';
import type { Logger } from '../../../engines/log/port';
import type { Wakeups } from '../../../engines/wakeups/port';
import type { StoredMessage } from '../relay/envelopes';
import type { SubscribedChannels } from './subscribed-channels';
import type { RealtimeMetrics } from '../session/metrics';
import type { Outbox, PageBounds, Places, TailPage } from './outbox';

const POLL_MS = 1_000;
const PAGE: PageBounds = { messages: 1_000, bytes: 8 * 1024 * 1024 };
const RETRY = { first_ms: 50, most_ms: 2_000 } as const;

export interface TailDeps {
  outbox: Pick<Outbox, 'end' | 'tail' | 'bodies'>;
  wakeups: Wakeups;
  log: Logger;
  metrics: Pick<RealtimeMetrics, 'tail_rows' | 'tail_lag'>;
  /** The channels that have a place here. While there is none, only where the outbox ends is of interest. */
  channels: SubscribedChannels<unknown>;
  deliver(message: StoredMessage): void;
  /** True while the fan-out has more than enough to write. */
  saturated(): boolean;
}

/**
 * Reads all shards of the outbox once per node and by one statement, from where they end at the start on; of channels
 * that nobody hears here, only that there was something. Woken by the projector; polls each second in case a wake-up
 * was lost. A database that goes away is waited for, and reading goes on after the last places: nothing is lost or
 * repeated.
 */
export class Tail {
  private after: Places | null = null;
  /** By the monotonic clock. */
  private read_at = performance.now();
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
        if (this.after === null) {
          this.after = await this.deps.outbox.end();
          this.started();
        }
        news.clear();
        const at_end = this.deps.channels.size === 0 ? await this.skip(this.after) : await this.read(this.after);
        backoff.reset();
        this.read_at = performance.now();
        if (at_end) await news.wait(POLL_MS, stop);
        while (this.deps.saturated() && !stop.aborted) {
          await pause(5, stop);
          this.read_at = performance.now();
        }
      } catch (error) {
        if (stop.aborted) return;
        this.deps.log.warn({ err: error }, 'the outbox cannot be read; trying again');
        await pause(backoff.next(), stop);
      }
    }
  }

  /** Milliseconds since the outbox was read, or could have been; above {@link POLL_MS} for long, no message comes. */
  silentFor(): number {
    return performance.now() - this.read_at;
  }

  /** True when nothing is left to read. */
  private async read(after: Places): Promise<boolean> {
    const { outbox, channels, metrics } = this.deps;
    channels.fresh.clear();
    const page = await outbox.tail(after, channels.filter(), PAGE);
    const missing = this.opened(page);
    // Before the places move, so that a failure reads all of it again: what was delivered is known by its seq.
    const rows = missing.length === 0 ? page.heard : merged(page.heard, await outbox.bodies(missing));
    this.after = page.places;
    for (const row of rows) this.deliver(row);
    if (page.messages > 0) metrics.tail_rows.inc(page.messages);
    if (page.newest_at !== null) metrics.tail_lag.set(Math.max(0, (Date.now() - Date.parse(page.newest_at)) / 1000));
    return !page.more;
  }

  /**
   * Messages that came without their data, since their channel was opened only after the statement was sent: nothing
   * later of it may go out before them.
   */
  private opened({ unsubscribed: unheard }: TailPage): { channel: string; seq: number }[] {
    const { fresh } = this.deps.channels;
    if (fresh.size === 0 || unheard === '') return [];
    const missing: { channel: string; seq: number }[] = [];
    for (const line of unheard.split('\n')) {
      const space = line.lastIndexOf(' ');
      const channel = line.slice(0, space);
      if (fresh.has(channel)) missing.push({ channel, seq: Number(line.slice(space + 1)) });
    }
    return missing;
  }

  /**
   * Passes by what nobody here listens to. A channel that came meanwhile may have read its head before the end was
   * asked for: then the rows in between are its own, and are read after all.
   */
  private async skip(after: Places): Promise<boolean> {
    const end = await this.deps.outbox.end();
    if (this.deps.channels.size > 0) return this.read(after);
    this.after = end;
    return true;
  }

  private deliver(row: StoredMessage): void {
    try {
      this.deps.deliver(row);
    } catch (error) {
      this.deps.log.error({ err: error, channel: row.channel, seq: row.seq }, 'a message could not be delivered');
    }
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.end_wakeups();
    await this.done;
  }
}

/** Both in the order of their ids. */
const merged = (rows: readonly StoredMessage[], more: readonly StoredMessage[]): StoredMessage[] =>
  [...rows, ...more].sort((a, b) => a.id - b.id);
