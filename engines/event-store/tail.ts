import type { Logger } from '../log/port';
import type { Wakeups } from '../wakeups/port';
import type { EventBatch, Subscription } from './port';

export interface TailOptions {
  /** Position to read after; null is the beginning. */
  after: string | null;
  wakeups: Wakeups;
  log: Logger | undefined;
  /** Milliseconds between looks when no wake-up comes; spread by a quarter. */
  poll_ms: number;
  /**
   * One page in commit order. `end` is true when nothing lay behind it at that time; undefined when nothing at all was
   * new.
   */
  fetch(after: string | null): Promise<{ batch: EventBatch; end: boolean } | undefined>;
  onBatch(batch: EventBatch): Promise<void>;
}

/** A tail that runs until it is stopped: engine errors are waited out, an error of the receiver ends it. */
export class Tail implements Subscription {
  readonly done: Promise<void>;
  private stopped = false;
  private woken = false;
  private wake: (() => void) | undefined;

  constructor(private readonly options: TailOptions) {
    const off = options.wakeups.on('events', () => this.rouse());
    this.done = this.run().finally(off);
    // The owner may look at `done` only when it stops the tail; an early rejection is kept for it, not thrown at the
    // process.
    this.done.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.rouse();
    await this.done.catch(() => undefined);
  }

  private rouse(): void {
    this.woken = true;
    this.wake?.();
  }

  private async run(): Promise<void> {
    const { options } = this;
    let after = options.after;
    let failures = 0;
    while (!this.stopped) {
      this.woken = false;
      let page: Awaited<ReturnType<TailOptions['fetch']>>;
      try {
        page = await options.fetch(after);
        if (failures > 0) options.log?.info({ failures }, 'event tail reads again');
        failures = 0;
      } catch (error) {
        failures += 1;
        options.log?.warn({ err: error, failures, after }, 'event tail cannot read, trying again');
        await this.pause(Math.min(50 * 2 ** failures, 5000), false);
        continue;
      }
      if (this.stopped) return;
      if (page) {
        await options.onBatch(page.batch);
        after = page.batch.position;
      }
      if (!page || page.end) await this.pause(options.poll_ms, true);
    }
  }

  private async pause(ms: number, wakeable: boolean): Promise<void> {
    if (this.stopped || (wakeable && this.woken)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms * (0.75 + Math.random() / 2));
      this.wake = () => {
        if (!wakeable && !this.stopped) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = undefined;
  }
}
