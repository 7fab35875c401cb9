import pg from 'pg';
import { pause } from '../../kernel/signal';
import { KEEPALIVE } from './session-settings';

const CONNECT_MS = 10_000;
const ASK_MS = 5_000;
/** How long the goodbye may take. */
const END_MS = 1_000;

export interface KeptSessionOptions {
  config: pg.ClientConfig;
  /** Shown to operators in `pg_stat_activity`. */
  name: string;
  /**
   * Milliseconds between proofs that the link is alive, and the longest wait for one and for the connection: a
   * half-open link looks like silence. Default 5 s, for the connection 10 s.
   */
  ask_ms?: number;
  /** What is asked. Default: a statement that does nothing. */
  ask?(client: pg.Client): Promise<unknown>;
  /** The reason of the signal that the link is lost, made of its cause. Default: the cause. */
  lost?(cause: unknown): unknown;
}

/**
 * One connection beside every pool, for what the database keeps as long as it stands: a lock, a LISTEN. `work` is told
 * by the signal when it is lost, and the connection ends with the work.
 * @throws what the connection, or the work, throws
 */
export async function keptSession<T>(
  options: KeptSessionOptions,
  work: (client: pg.Client, lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const { config, name, ask_ms = ASK_MS } = options;
  const client = new pg.Client({
    ...config,
    application_name: name,
    connectionTimeoutMillis: options.ask_ms ?? CONNECT_MS,
    keepAlive: true,
    options: `${config.options ?? ''} ${KEEPALIVE}`,
  });
  const alive = { text: 'select 1', query_timeout: ask_ms } as pg.QueryConfig;
  const ask = options.ask ?? ((one: pg.Client) => one.query(alive));
  const ending = new AbortController();
  const lose = (cause: unknown) => ending.abort(options.lost?.(cause) ?? cause);
  client.on('error', lose);
  client.on('end', () => lose(new Error('the server closed the connection')));
  let asking: NodeJS.Timeout | undefined;
  try {
    await client.connect();
    let answered = true;
    asking = setInterval(() => {
      if (!answered) return;
      answered = false;
      ask(client)
        .catch(lose)
        .finally(() => (answered = true));
    }, ask_ms);
    return await work(client, ending.signal);
  } finally {
    clearInterval(asking);
    const ended = () => ending.abort();
    client.end().then(ended, ended);
    // The goodbye of a link that is silent would never be answered; after an answer no timer may keep the process.
    await pause(END_MS, ending.signal);
  }
}
