import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';

/** Names of the library's statements at the end of a job. */
const END_OF_JOB = /^(?:complete|fail)_job(?:_q)?\//;

/**
 * The pool as the library uses it: without the library's own ends of jobs, which concern no row. The library waits for
 * none of them, so that each would end the process by an unhandled rejection while the database is unavailable.
 */
export function libraryPool(pool: Pool): Pool {
  const connect = (listen?: Parameters<Pool['connect']>[0]) => (listen ? pool.connect(listen) : deferred(pool));
  return Object.create(pool, { connect: { value: connect } }) as Pool;
}

/** A client that connects at its first statement that is sent. */
async function deferred(pool: Pool): Promise<Pick<PoolClient, 'release'> & { query: unknown }> {
  let client: Promise<PoolClient> | undefined;
  return {
    async query(statement: QueryConfig | string, values?: unknown[]): Promise<Pick<QueryResult, 'rows' | 'rowCount'>> {
      if (typeof statement === 'object' && END_OF_JOB.test(statement.name ?? '')) return { rows: [], rowCount: 0 };
      client ??= pool.connect();
      return (await client).query(statement, values);
    },
    release: () => void client?.then((connected) => connected.release()).catch(() => undefined),
  };
}
