import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { LOCKS } from '../locks/port';
import type { Logger } from '../log/port';
import { KEEPALIVE } from '../postgres/session-settings';
import { LocalWakeups } from './local';
import type { Wakeups } from './port';

const CHANNEL = 'lumio_wakeups';
/** Each link holds this advisory lock, shared: every role can see in pg_locks how many links there are. */
const LINK_LOCK = LOCKS.wakeup_links;
const OTHERS = `
  select count(*)::int as others from pg_locks
  where locktype = 'advisory' and classid = 0 and objid = ${LINK_LOCK} and objsubid = 1 and pid <> pg_backend_pid()
    and database = (select oid from pg_database where datname = current_database())`;
/**
 * A new link says HELLO; who hears it sends from now on and says WELCOME, upon which the new one wakes everyone:
 * nothing fell between.
 */
const HELLO = '?';
const WELCOME = '!';

export interface PostgresWakeupsOptions {
  url: string;
  log?: Logger;
  /** Milliseconds in which notifications of one name become one. Default 5. */
  coalesce_ms?: number;
  /**
   * Milliseconds between proofs that the link is alive, and the longest wait for one: a half-open link looks like
   * silence. Default 5000.
   */
  keepalive_ms?: number;
}

/**
 * Wake-ups by LISTEN and NOTIFY on a connection of their own: the data transactions never carry a NOTIFY, which would
 * serialise their commits. Listeners of this process are woken at once, without the round trip. While the link is down
 * others wait for their fallback poll; when it is back everyone is woken. A process that is alone on the database sends
 * nothing: most installations are one process, and a NOTIFY every few milliseconds was a tenth of its work under load.
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
  /** Whether anyone else listens; unknown counts as yes. */
  private others = true;
  private heard = false;
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
    if (this.client && !this.others) return;
    this.due.add(name);
    this.schedule();
  }

  on(name: string, wake: (elsewhere: boolean) => void): () => void {
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
  private ask(client: pg.Client, query: pg.QueryConfig): Promise<pg.QueryResult> {
    const answer = this.asked.then(() => client.query(query));
    this.asked = answer.catch(() => undefined);
    return answer;
  }

  /** A link that comes up after the question was answered is heard by its HELLO, which may overtake the answer here. */
  private async lookForOthers(client: pg.Client): Promise<void> {
    this.heard = false;
    const { rows } = await this.ask(client, { name: 'others', text: OTHERS });
    this.others = rows[0].others > 0 || this.heard;
  }

  private hear(name: string): void {
    this.heard = true;
    this.others = true;
    if (name === HELLO) {
      this.due.add(WELCOME);
      this.schedule();
    }
    // While either's link was down, or the other believed to be alone, notifications were left out.
    if (name === HELLO || name === WELCOME) this.local.wakeAll();
    else this.local.notify(name, true);
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
      options: `-c synchronous_commit=off ${KEEPALIVE}`,
      keepAlive: true,
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
      if (payload.slice(0, space) !== this.self) this.hear(payload.slice(space + 1));
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}; select pg_advisory_lock_shared(${LINK_LOCK})`);
      await this.lookForOthers(client);
      this.client = client;
      connected();
      this.due.add(HELLO);
      this.schedule();
      while (!this.closed && !lost) {
        await this.pause(keepalive_ms);
        if (!this.closed && !lost) await this.lookForOthers(client);
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
