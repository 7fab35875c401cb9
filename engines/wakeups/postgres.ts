import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Logger } from '../log/port';
import { LocalWakeups } from './local';
import type { Wakeups } from './port';

const CHANNEL = 'lumio_wakeups';

export interface PostgresWakeupsOptions {
  url: string;
  log?: Logger;
  /** Milliseconds in which notifications of one name become one. Default 5. */
  coalesce_ms?: number;
  /** Milliseconds between proofs that the link is alive, and the longest wait for one: a half-open link looks like silence. Default 5000. */
  keepalive_ms?: number;
}

/**
 * Wake-ups by LISTEN and NOTIFY on a connection of their own: the data transactions never carry a NOTIFY, which would serialise their commits.
 * Listeners of this process are woken at once, without the round trip. While the link is down others wait for their fallback poll;
 * when it is back everyone is woken.
 */
export function createPostgresWakeups(options: PostgresWakeupsOptions): Wakeups {
  return new PostgresWakeups(options);
}

class PostgresWakeups implements Wakeups {
  private readonly local = new LocalWakeups();
  private readonly self = randomUUID();
  private readonly due = new Set<string>();
  private flush_timer: NodeJS.Timeout | undefined;
  private sent_at = 0;
  private flushing = false;
  /** Settled when the link has answered its last statement. */
  private asked: Promise<unknown> = Promise.resolve();
  private client: pg.Client | undefined;
  private closed = false;
  private interrupt: (() => void) | undefined;
  private readonly running: Promise<void>;

  constructor(private readonly options: PostgresWakeupsOptions) {
    this.running = this.run();
  }

  notify(name: string): void {
    if (this.closed) return;
    this.local.notify(name);
    this.due.add(name);
    this.schedule();
  }

  on(name: string, wake: () => void): () => void {
    return this.local.on(name, wake);
  }

  async close(): Promise<void> {
    if (this.client && this.due.size > 0) await this.flush();
    this.closed = true;
    clearTimeout(this.flush_timer);
    this.interrupt?.();
    await this.running;
    await this.local.close();
  }

  private schedule(): void {
    if (this.flush_timer || this.flushing || !this.client) return;
    const wait_ms = Math.max(0, this.sent_at + (this.options.coalesce_ms ?? 5) - Date.now());
    this.flush_timer = setTimeout(() => void this.flush(), wait_ms);
  }

  /** Never rejects: a notification that cannot be sent stays due, and goes out with the next link. */
  private async flush(): Promise<void> {
    clearTimeout(this.flush_timer);
    this.flush_timer = undefined;
    const client = this.client;
    if (!client || this.flushing || this.due.size === 0) return;
    this.flushing = true;
    const names = [...this.due];
    this.due.clear();
    this.sent_at = Date.now();
    try {
      const text = 'select pg_notify($1, name) from unnest($2::text[]) name';
      const values = [CHANNEL, names.map((name) => `${this.self} ${name}`)];
      await this.ask(client, { name: 'wake', text, values });
    } catch (error) {
      this.options.log?.debug({ err: error }, 'wake-ups could not be sent, the link is renewed');
      for (const name of names) this.due.add(name);
    }
    this.flushing = false;
    if (this.due.size > 0) this.schedule();
  }

  /** One statement at a time: the client must not be asked while it works. */
  private ask(client: pg.Client, query: pg.QueryConfig): Promise<unknown> {
    const answer = this.asked.then(() => client.query(query));
    this.asked = answer.catch(() => undefined);
    return answer;
  }

  private async run(): Promise<void> {
    let failures = 0;
    while (!this.closed) {
      try {
        await this.serve(() => {
          if (failures > 0) this.options.log?.info({ failures }, 'wake-up link is back');
          // What was notified while nobody listened is unknown.
          this.local.wakeAll();
          failures = 0;
        });
      } catch (error) {
        failures += 1;
        this.options.log?.warn({ err: error, failures }, 'wake-up link lost, connecting again');
        if (!this.closed) await this.pause(Math.min(50 * 2 ** failures, 5000) * (0.75 + Math.random() / 2));
      }
    }
  }

  /** One connection's life: resolves when closed, rejects when the link is lost. */
  private async serve(connected: () => void): Promise<void> {
    const keepalive_ms = this.options.keepalive_ms ?? 5000;
    const client = new pg.Client({
      connectionString: this.options.url,
      application_name: 'lumio wakeups',
      connectionTimeoutMillis: keepalive_ms,
      query_timeout: keepalive_ms,
      // A NOTIFY writes a commit record; nobody needs it on disk.
      options: '-c synchronous_commit=off',
    });
    let lost: Error | undefined;
    const fail = (error: Error) => {
      lost ??= error;
      this.interrupt?.();
    };
    client.on('error', fail);
    client.on('end', () => fail(new Error('the server closed the connection')));
    client.on('notification', ({ payload = '' }) => {
      const space = payload.indexOf(' ');
      if (payload.slice(0, space) !== this.self) this.local.notify(payload.slice(space + 1));
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
      this.client = client;
      connected();
      if (this.due.size > 0) this.schedule();
      while (!this.closed && !lost) {
        await this.pause(keepalive_ms);
        if (!this.closed && !lost) await this.ask(client, { text: 'select 1' });
      }
      if (lost && !this.closed) throw lost;
    } finally {
      this.client = undefined;
      await client.end().catch((error: Error) => this.options.log?.debug({ err: error }, 'wake-up link ended badly'));
    }
  }

  private async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.interrupt = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.interrupt = undefined;
  }
}
