import pg from 'pg';
import { shownInstant } from '../../lib/time/instants';
import { holdLock } from '../locks/postgres';
import type { HeldLock, LockKey } from '../locks/port';
import { CopyIn, isCopyIn } from './copy-in';
import { isOutOfService } from './errors';
import type { Database, Queryable, Row, Statement } from './port';
import { BOUNDED } from './session-settings';

/** Text of a time in a session with the zone UTC. */
const UTC = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00$/;
/** pg's list of types names no arrays. */
const TEXT_ARRAY = 1009 as unknown as typeof pg.types.builtins.TEXT;

// int8 and numeric arrive as text by default. Our 64-bit values (positions, offsets, counts) stay below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
// Times stay text at the driver and become RFC 3339 UTC; a JS Date would cut microseconds. `infinity` stays unchanged.
const utc = (text: string) => (UTC.test(text) ? shownInstant(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`) : text);
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, utc);
// JSON stays text: parsing is the reader's decision, since JSON.parse alters large numbers.
pg.types.setTypeParser(pg.types.builtins.JSON, (text) => text);
// The driver reads arrays letter by letter, which for a key's hundred permissions took longer than the rest of the row.
// Names need no quotes.
const parseTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (text: string) => (string | null)[];
pg.types.setTypeParser(TEXT_ARRAY, (text: string) => {
  if (text === '{}') return [];
  const plain = text.startsWith('{') && !/["\\]/.test(text) && !text.includes('NULL') && text.indexOf('{', 1) === -1;
  return plain ? text.slice(1, -1).split(',') : parseTextArray(text);
});

export interface PoolOptions {
  url: string;
  /** Names the pool in metrics. */
  name: string;
  /** Name in pg_stat_activity. Default: `lumio` and the pool's name. */
  application?: string;
  /** Most connections. Default 10. */
  size?: number;
  /** Milliseconds after which the server cancels a statement. Default: never. */
  statement_timeout_ms?: number;
  /**
   * Milliseconds after which a statement without an answer fails and its connection is given up, because the server has
   * vanished silently. Bounds the wait for a connection, too. Longer than `statement_timeout_ms`, so that a live server
   * reports its own timeout first. Default: never; then the kernel detects the loss, after up to a quarter of an hour
   * for a statement that was sent.
   */
  query_timeout_ms?: number;
  /**
   * Sends statements without waiting for earlier answers; such a connection supports no cursors. Default false.
   */
  pipeline?: boolean;
  /** Checks each new connection before its first use. @throws when it must not be used; then it is closed */
  check?(client: pg.ClientBase): Promise<void>;
  onError?: (error: Error) => void;
}

const CONNECT_MS = 10_000;
/** Time within which an idle connection must answer a probe; otherwise it is lost, too. */
const PROBE_MS = 2_000;

/** A pool of connections as the {@link Database} port. */
export class PostgresDatabase implements Database {
  readonly pool: pg.Pool;
  readonly name: string;
  private readonly patience: Patience;
  private probing = false;

  constructor(private readonly options: PoolOptions) {
    this.name = options.name;
    const { query_timeout_ms, check } = options;
    this.patience = query_timeout_ms === undefined ? {} : { query_timeout: query_timeout_ms };
    this.pool = new pg.Pool({
      connectionString: options.url,
      application_name: options.application ?? `lumio ${options.name}`,
      max: options.size ?? 10,
      pipeline: options.pipeline ?? false,
      idleTimeoutMillis: 30_000,
      connectionTimeoutMillis: Math.min(CONNECT_MS, query_timeout_ms ?? CONNECT_MS),
      keepAlive: true,
      // The kernel's own two hours would leave a link to a vanished server open.
      keepAliveInitialDelayMillis: 10_000,
      ...(check && { verify: (client, done) => void check(client).then(() => done(), done) }),
      options: `-c timezone=UTC ${BOUNDED}${options.statement_timeout_ms ? ` -c statement_timeout=${options.statement_timeout_ms}` : ''}`,
    });
    // The pool replaces an idle connection that breaks (server restart); without a listener the event would end the
    // process. While the pool closes, the server may end a connection first, which is no error. The user of a client
    // gets its end as an error of the statement.
    this.pool.on('connect', (client) => void client.on('error', () => undefined));
    this.pool.on('error', (error) => {
      if (!this.pool.ending) options.onError?.(error);
    });
  }

  async query<R extends Row = Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]> {
    const { pool, patience } = this;
    try {
      return (await pool.query<R>(queryOf(text, values, name, patience))).rows;
    } catch (error) {
      this.notice(error);
      throw error;
    }
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>, last?: (result: T) => Statement | null): Promise<T> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    let ended = false;
    const onError = (error: Error) => (broken = error);
    client.on('error', onError);
    const tx = asQueryable(client, this.patience);
    try {
      await tx.query('begin');
      const result = await work(tx);
      const statement = last?.(result);
      const said = statement && tx.query(statement.text, statement.values, statement.name);
      if (!client.pipeline) await said;
      ended = true;
      const committed = tx.query('commit');
      // Waits for both outcomes before the connection is released; throws the error of the last statement first, which
      // is the cause when the commit fails.
      await Promise.allSettled([said, committed]);
      await said;
      await committed;
      return result;
    } catch (error) {
      this.notice(error);
      // A silent connection would not answer the rollback either; a server that is no longer the primary is not used.
      if (isSilence(error) || isOutOfService(error)) broken = error as Error;
      else if (!ended) await tx.query('rollback').catch((failure: Error) => (broken = failure));
      throw error;
    } finally {
      client.off('error', onError);
      client.release(broken);
    }
  }

  hold<T>(lock: LockKey, work: (held: HeldLock) => Promise<T>): Promise<T> {
    return holdLock({ connectionString: this.options.url }, lock, work);
  }

  /** Connections open and idle, and callers that wait for one; for metrics. */
  stats(): { connections: number; idle: number; waiting: number } {
    return { connections: this.pool.totalCount, idle: this.pool.idleCount, waiting: this.pool.waitingCount };
  }

  async close(): Promise<void> {
    await this.pool.end();
  }

  /**
   * Probes the idle connections after one went silent, or its server is no longer the primary, so that callers do not
   * find each of them broken.
   */
  private notice(error: unknown): void {
    const suspect = isSilence(error) || isOutOfService(error);
    if (!suspect || this.probing || this.pool.ending) return;
    this.probing = true;
    const probe = async () => {
      const client = await this.pool.connect();
      const query = { text: 'show transaction_read_only', query_timeout: PROBE_MS } as pg.QueryConfig;
      await client.query<{ transaction_read_only: string }>(query).then(
        // True ends the connection.
        ({ rows }) => client.release(rows[0]!.transaction_read_only === 'on'),
        (failure: Error) => client.release(failure),
      );
    };
    const probes = Array.from({ length: this.pool.idleCount }, probe);
    // A failure to connect is reported to the callers that need a connection.
    void Promise.allSettled(probes).then(() => (this.probing = false));
  }
}

/** A connection as the {@link Queryable} port. */
export function asQueryable(client: pg.ClientBase, patience: Patience = {}): Queryable {
  return {
    async query<R extends Row = Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]> {
      if (isCopyIn(text)) return copyIn(client, text, values, patience);
      return (await client.query<R>(queryOf(text, values, name, patience))).rows;
    },
  };
}

/** Sends the data of a COPY; returns no rows. */
async function copyIn(
  client: pg.ClientBase,
  text: string,
  [data]: readonly unknown[] = [],
  { query_timeout }: Patience,
): Promise<never[]> {
  await new Promise<void>((resolve, reject) => {
    const copy = new CopyIn(text, data as Buffer, query_timeout);
    // The driver's types do not allow a custom query with a callback.
    client.query(copy as unknown as string, (error: Error | null) => (error ? reject(error) : resolve()));
  });
  return [];
}

/** Part of a query's configuration that the driver's types leave out. */
type Patience = { query_timeout?: number };

const queryOf = (
  text: string,
  values: readonly unknown[] | undefined,
  name: string | undefined,
  patience: Patience,
) => ({
  text,
  values: values as unknown[],
  ...(name ? { name } : {}),
  ...patience,
});

/** Whether the error is the driver's own query timeout. */
const isSilence = (error: unknown): error is Error => error instanceof Error && error.message === 'Query read timeout';
