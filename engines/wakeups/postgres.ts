import type { Logger } from '../log/port';
import { WakeupLink } from './link';
import { LocalWakeups } from './local';
import type { Wakeups } from './port';

/**
 * A new link sends HELLO; each receiver sends notifications from then on and replies WELCOME, on which the new link
 * wakes all listeners, so that no notification is missed in between.
 */
const HELLO = '?';
const WELCOME = '!';

export interface PostgresWakeupsOptions {
  url: string;
  log?: Logger;
  /** Milliseconds in which notifications of one name become one. Default 5. */
  coalesce_ms?: number;
  /**
   * Milliseconds between probes of the link, and the longest wait for one: a half-open link is only silent. Default
   * 5000.
   */
  keepalive_ms?: number;
}

/**
 * Wake-ups by LISTEN and NOTIFY on a connection of their own: the data transactions never have a NOTIFY, which would
 * serialise their commits. Listeners of this process are woken at once, without the round trip. While the link is down
 * other processes wait for their fallback poll; after a reconnection all listeners are woken. A process that is alone
 * on the database sends nothing, because a NOTIFY every few milliseconds was a tenth of its work under load.
 */
export function createPostgresWakeups(options: PostgresWakeupsOptions): Wakeups {
  return new PostgresWakeups(options);
}

class PostgresWakeups implements Wakeups {
  private readonly local = new LocalWakeups();
  private readonly link: WakeupLink;
  private readonly due = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  /** On the monotonic clock: a wall clock that is set back would hold notifications until it has caught up. */
  private sent_at = 0;
  private flushing = false;
  private closed = false;

  constructor(private readonly options: PostgresWakeupsOptions) {
    this.link = new WakeupLink({
      url: options.url,
      log: options.log,
      keepalive_ms: options.keepalive_ms ?? 5000,
      onUp: () => {
        this.local.wakeAll();
        this.tell(HELLO);
      },
      onName: (name) => this.hear(name),
    });
  }

  notify(name: string): void {
    if (this.closed) return;
    this.local.notify(name);
    if (!(this.link.up && this.link.alone)) this.tell(name);
  }

  on(name: string, wake: (elsewhere: boolean) => void): () => void {
    return this.local.on(name, wake);
  }

  async close(): Promise<void> {
    await this.flush();
    this.closed = true;
    clearTimeout(this.timer);
    await this.link.close();
    await this.local.close();
  }

  private hear(name: string): void {
    if (name === HELLO) this.tell(WELCOME);
    // Notifications were omitted while either link was down, or the other process counted itself as alone.
    if (name === HELLO || name === WELCOME) this.local.wakeAll();
    else this.local.notify(name, true);
  }

  private tell(name: string): void {
    this.due.add(name);
    this.schedule();
  }

  private schedule(): void {
    if (this.timer || this.flushing || !this.link.up) return;
    const wait_ms = Math.max(0, this.sent_at + (this.options.coalesce_ms ?? 5) - performance.now());
    this.timer = setTimeout(() => void this.flush(), wait_ms);
  }

  /** Never rejects: a notification that cannot be sent stays due, and is sent over the next link. */
  private async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.link.up || this.flushing || this.due.size === 0) return;
    this.flushing = true;
    const names = [...this.due];
    this.due.clear();
    this.sent_at = performance.now();
    try {
      await this.link.tell(names);
    } catch (error) {
      this.options.log?.debug({ err: error }, 'wake-ups could not be sent, the link is renewed');
      for (const name of names) this.due.add(name);
    }
    this.flushing = false;
    if (this.due.size > 0) this.schedule();
  }
}
