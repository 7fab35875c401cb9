import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { Backoff } from '../../kernel/retry';
import { pause } from '../../kernel/signal';
import { LOCKS } from '../locks/port';
import type { Logger } from '../log/port';
import { keptSession } from '../postgres/kept-session';

const CHANNEL = 'lumio_wakeups';
/** Links of the builds that read the outbox by one order of ids were named `lumio wakeups`: it is told by the name. */
const LINK_NAME = 'lumio wakeup link';
/** Each link holds this advisory lock, shared: every role can see in pg_locks how many links there are. */
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
  /** The link is up: what was told while it was down is unknown. */
  onUp(): void;
  /** Another process has told this name. */
  onName(name: string): void;
}

/** A connection that tells names to other processes and hears theirs; when it is lost it is made anew. */
export class WakeupLink {
  /** Nobody else listens, as far as is known; unknown counts as somebody. */
  alone = false;
  private heard = false;
  private readonly self = randomUUID();
  private readonly closing = new AbortController();
  private readonly running: Promise<void>;
  private client: pg.Client | undefined;
  /** Settled when the link has answered its last statement: the client must not be asked while it works. */
  private asked: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: WakeupLinkOptions) {
    this.running = this.run();
  }

  get up(): boolean {
    return this.client !== undefined;
  }

  /** @throws Error when it was not told, or may not have been */
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

  /** A link that comes up after the answer was given is heard of, perhaps before that answer arrives here. */
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

  /** One connection's life: resolves when closed, rejects when the link is lost. */
  private async serve(connected: () => void): Promise<void> {
    const { url, keepalive_ms, onUp } = this.options;
    const { signal: closing } = this.closing;
    // Its commits need not reach the disk, since it writes nothing but NOTIFY; data are written on other connections.
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
