import pg from 'pg';
import type { Database, Queryable, Row, Statement } from './port';

/** pg's list of types names no arrays. */
const TEXT_ARRAY = 1009 as unknown as typeof pg.types.builtins.TEXT;

// int8 and numeric arrive as text by default. Our 64-bit values (positions, offsets, counts) stay below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
// Times stay text at the driver and become RFC 3339 UTC; a JS Date would cut microseconds.
const utc = (text: string) => {
  const instant = text.replace(' ', 'T');
  return instant.endsWith('+00') ? `${instant.slice(0, -3)}Z` : instant;
};
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, utc);
// JSON stays text: parsing is the reader's decision, since JSON.parse alters large numbers.
pg.types.setTypeParser(pg.types.builtins.JSON, (text) => text);
// The driver reads arrays letter by letter, which for a key's hundred permissions took longer than the rest of the row. Names need no quotes.
const parseTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (text: string) => (string | null)[];
pg.types.setTypeParser(TEXT_ARRAY, (text: string) => {
  if (text === '{}') return [];
  const plain = text.startsWith('{') && !/["\\]/.test(text) && !text.includes('NULL') && text.indexOf('{', 1) === -1;
  return plain ? text.slice(1, -1).split(',') : parseTextArray(text);
});

export interface PoolOptions {
  url: string;
  /** Shows in pg_stat_activity, and names the pool in metrics. */
  name: string;
  /** Most connections. Default 10. */
  size?: number;
  /** Milliseconds after which the server cancels a statement; 0 (default) is never. */
  statement_timeout_ms?: number;
  /** Statements leave without waiting for the answers of those before; such a connection takes no cursors and no COPY. Default false. */
  pipeline?: boolean;
  onError?: (error: Error) => void;
}

/** A pool of connections as the {@link Database} port. */
export class PostgresDatabase implements Database {
  readonly pool: pg.Pool;
  readonly name: string;

  constructor(options: PoolOptions) {
    this.name = options.name;
    this.pool = new pg.Pool({
      connectionString: options.url,
      application_name: `lumio ${options.name}`,
      max: options.size ?? 10,
      pipeline: options.pipeline ?? false,
      idleTimeoutMillis: 30_000,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      // The kernel's own two hours would leave a link to a vanished server open.
      keepAliveInitialDelayMillis: 10_000,
      options: `-c timezone=UTC${options.statement_timeout_ms ? ` -c statement_timeout=${options.statement_timeout_ms}` : ''}`,
    });
    // An idle connection that breaks (server restart) is replaced by the pool; without a listener it would end the process.
    // While we close, the server may end a connection before our farewell reaches it: that is no news.
    this.pool.on('error', (error) => {
      if (!this.pool.ending) options.onError?.(error);
    });
  }

  async query<R extends Row = Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]> {
    return (await this.pool.query<R>({ text, values: values as unknown[], ...(name ? { name } : {}) })).rows;
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>, last?: (result: T) => Statement | null): Promise<T> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    let ended = false;
    const onError = (error: Error) => (broken = error);
    client.on('error', onError);
    try {
      await client.query('begin');
      const tx = asQueryable(client);
      const result = await work(tx);
      const statement = last?.(result);
      const said = statement && tx.query(statement.text, statement.values, statement.name);
      if (!client.pipeline) await said;
      ended = true;
      const committed = client.query('commit');
      // Both have their outcome before the connection goes back; why the last statement failed says more than the commit that could not be.
      await Promise.allSettled([said, committed]);
      await said;
      await committed;
      return result;
    } catch (error) {
      if (!ended) await client.query('rollback').catch((failure: Error) => (broken = failure));
      throw error;
    } finally {
      client.off('error', onError);
      client.release(broken);
    }
  }

  /** Connections open and idle, and callers that wait for one; for metrics. */
  stats(): { connections: number; idle: number; waiting: number } {
    return { connections: this.pool.totalCount, idle: this.pool.idleCount, waiting: this.pool.waitingCount };
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}

/** One connection as the {@link Queryable} port. */
export function asQueryable(client: pg.ClientBase): Queryable {
  return {
    async query<R extends Row = Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]> {
      return (await client.query<R>({ text, values: values as unknown[], ...(name ? { name } : {}) })).rows;
    },
  };
}
