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
  private stopped = false;
  private woken = false;
  private wake: (() => void) | null = null;
  /** Settles when the starting point is known: messages committed after that are delivered. */
  readonly ready: Promise<void>;
  private started: () => void = () => undefined;
  private readonly end_wakeups: () => void;
  private readonly done: Promise<void>;

  constructor(private readonly deps: TailDeps) {
    this.end_wakeups = deps.wakeups.on('outbox', () => {
      this.woken = true;
      this.wake?.();
    });
    this.ready = new Promise((resolve) => (this.started = resolve));
    this.done = this.run();
  }

  private async run(): Promise<void> {
    let retry_ms: number = RETRY.first_ms;
    while (!this.stopped) {
      try {
        if (this.after < 0) {
          this.after = await this.deps.outbox.newest();
          this.started();
        }
        this.woken = false;
        const at_end = this.deps.unheard() ? await this.skip() : await this.read();
        retry_ms = RETRY.first_ms;
        if (at_end && !this.woken) await this.pause(POLL_MS);
        while (this.deps.saturated() && !this.stopped) await new Promise((resolve) => setTimeout(resolve, 5));
      } catch (error) {
        if (this.stopped) return;
        this.deps.log.warn({ err: error, after: this.after }, 'the outbox cannot be read; trying again');
        await this.pause(retry_ms);
        retry_ms = Math.min(retry_ms * 2, RETRY.most_ms);
      }
    }
  }

  /** True when nothing is left to read. */
  private async read(): Promise<boolean> {
    const rows = await this.deps.outbox.tail(this.after, PAGE);
    const bytes = rows.length > 0 ? this.take(rows) : 0;
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
  private take(rows: StoredMessage[]): number {
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

  private async pause(ms: number): Promise<void> {
    if (this.stopped) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    this.wake = null;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.end_wakeups();
    this.wake?.();
    await this.done;
  }
}
