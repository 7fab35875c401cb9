import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { Backoff } from '../../lib/async/retry';
import { pause } from '../../lib/async/signal';
import { LOCKS } from '../locks/port';
import type { Logger } from '../log/port';
import { keptSession } from '../postgres/kept-session';

const CHANNEL = 'lumio_wakeups';
/** Differs from `lumio wakeups`, which identifies links of the releases that read the outbox by one order of ids. */
const LINK_NAME = 'lumio wakeup link';
/** Advisory lock that each link holds shared, so that every role can count the links in pg_locks. */
const LINK_LOCK = LOCKS.wakeup_links;
const OTHERS = `
  select count(*)::int as others from pg_locks
  where locktype = 'advisory' and classid = 0 and objid = ${LINK_LOCK} and objsubid = 1 and pid <> pg_backend_pid()
    and database = (select oid from pg_database where datname = current_database())`;

export interface WakeupLinkOptions {
  url: string;
  log: Logger | undefined;
  /** See {@link keptSession}. */
  keepalive_ms: number;
  /** Called when the link is up; notifications sent while it was down are lost. */
  onUp(): void;
  /** Called when another process has notified this name. */
  onName(name: string): void;
}

/** Connection that sends names to other processes and receives theirs; reconnects after a loss. */
export class WakeupLink {
  /** True when no other link is known to listen; false while that is unknown. */
  alone = false;
  private heard = false;
  private readonly self = randomUUID();
  private readonly closing = new AbortController();
  private readonly running: Promise<void>;
  private client: pg.Client | undefined;
  /** Settles when the last statement is answered, because the client must not run two statements at a time. */
  private asked: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: WakeupLinkOptions) {
    this.running = this.run();
  }

  get up(): boolean {
    return this.client !== undefined;
  }

  /** Notifies other processes. @throws Error when the notification may not have been sent */
  async tell(names: readonly string[]): Promise<void> {
    if (!this.client) throw new Error('the wake-up link is down');
    const text = 'select pg_notify($1, name) from unnest($2::text[]) name';
    await this.ask(this.client, { name: 'wake', text, values: [CHANNEL, names.map((name) => `${this.self} ${name}`)] });
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.running;
  }

  private ask(client: pg.Client, query: pg.QueryConfig): Promise<pg.QueryResult> {
    const answer = this.asked.then(() => client.query(query));
    this.asked = answer.catch(() => undefined);
    return answer;
  }

  /** Counts other links. A link that comes up meanwhile sends a notification, which may arrive before the count. */
  private async lookForOthers(client: pg.Client): Promise<void> {
    this.heard = false;
    const { rows } = await this.ask(client, { name: 'others', text: OTHERS });
    this.alone = rows[0].others === 0 && !this.heard;
  }

  private hear(payload: string): void {
    const space = payload.indexOf(' ');
    if (payload.slice(0, space) === this.self) return;
    this.heard = true;
    this.alone = false;
    this.options.onName(payload.slice(space + 1));
  }

  private async run(): Promise<void> {
    const { signal: closing } = this.closing;
    const { log } = this.options;
    const backoff = new Backoff({ first_ms: 100, most_ms: 5000 });
    while (!closing.aborted) {
      try {
        await this.serve(() => {
          if (backoff.failures > 0) log?.info({ failures: backoff.failures }, 'wake-up link is back');
          backoff.reset();
        });
      } catch (error) {
        const wait_ms = backoff.next();
        log?.warn({ err: error, failures: backoff.failures }, 'wake-up link lost, connecting again');
        await pause(wait_ms, closing);
      }
    }
  }

  /** Runs a connection: resolves when closed, rejects when the link is lost. */
  private async serve(connected: () => void): Promise<void> {
    const { url, keepalive_ms, onUp } = this.options;
    const { signal: closing } = this.closing;
    // Its commits need not reach the disk, because it only writes NOTIFY; data are written on other connections.
    const config = { connectionString: url, query_timeout: keepalive_ms, options: '-c synchronous_commit=off' };
    const session = {
      config,
      name: LINK_NAME,
      ask_ms: keepalive_ms,
      ask: (client: pg.Client) => this.lookForOthers(client),
    };
    await keptSession(session, async (client, lost) => {
      client.on('notification', ({ payload = '' }) => this.hear(payload));
      await client.query(`listen ${CHANNEL}; select pg_advisory_lock_shared(${LINK_LOCK})`);
      await this.lookForOthers(client);
      this.client = client;
      try {
        connected();
        onUp();
        await pause(Infinity, AbortSignal.any([lost, closing]));
      } finally {
        this.client = undefined;
      }
      if (!closing.aborted) lost.throwIfAborted();
    });
  }
}
