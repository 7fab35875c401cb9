import pg from 'pg';
import { pause } from '../../lib/async/signal';
import { KEEPALIVE } from './session-settings';

const CONNECT_MS = 10_000;
const ASK_MS = 5_000;
/** Longest wait for the end of the connection. */
const END_MS = 1_000;

export interface KeptSessionOptions {
  config: pg.ClientConfig;
  /** Shown to operators in `pg_stat_activity`. */
  name: string;
  /**
   * Milliseconds between probes of the connection, and the longest wait for a probe and for the connection: a half-open
   * connection is only silent. Default 5 s, for the connection 10 s.
   */
  ask_ms?: number;
  /** The probe. Default: a statement that does nothing. */
  ask?(client: pg.Client): Promise<unknown>;
  /** Makes the abort reason of the signal from the cause of the loss. Default: the cause. */
  lost?(cause: unknown): unknown;
}

/**
 * Runs `work` with a connection outside every pool, for state that the database keeps as long as the connection stands:
 * a lock, a LISTEN. The signal is aborted when the connection is lost; the connection ends with the work.
 * @throws the errors of the connection and of the work
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
    // Bounded, because a silent connection never confirms its end; after the confirmation no timer may keep the
    // process.
    await pause(END_MS, ending.signal);
  }
}
