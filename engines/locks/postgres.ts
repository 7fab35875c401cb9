import pg from 'pg';
import { KEEPALIVE } from '../postgres/session-settings';
import { type HeldLock, type LockKey, LockLost, LockTaken } from './port';

const CONNECT_MS = 10_000;
/** How often the connection is asked whether it lives, and how long it may take to answer. */
const ASK_MS = 5_000;

/** A lock's number or numbers as the database's functions take them, and as pg_locks shows them. */
const sqlOf = (lock: LockKey) =>
  typeof lock === 'number'
    ? { arguments: '$1::bigint', values: [lock], shown: '($1::bigint >> 32, $1::bigint & 4294967295, 1)' }
    : {
        arguments: '$1::int, hashtext($2)',
        values: [lock.pair, lock.name],
        shown: '($1::bigint, hashtext($2)::bigint & 4294967295, 2)',
      };

/** See {@link Database.hold}. The lock ends with the work, or with the process however that ends. @throws LockTaken */
export async function holdLock<T>(
  config: pg.ClientConfig,
  lock: LockKey,
  work: (held: HeldLock) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    ...config,
    application_name: 'lumio lock',
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    options: KEEPALIVE,
  });
  const lost = new AbortController();
  const lose = (cause: unknown) => lost.abort(new LockLost(cause));
  client.on('error', lose);
  client.on('end', () => lose(new Error('the server closed the connection')));
  const { arguments: key, values, shown } = sqlOf(lock);
  let asking: NodeJS.Timeout | undefined;
  try {
    await client.connect();
    const { rows } = await client.query<{ mine: boolean; pid: number }>(
      `select pg_try_advisory_lock(${key}) as mine, pg_backend_pid() as pid`,
      values,
    );
    const { mine, pid } = rows[0]!;
    if (!mine) throw new LockTaken();
    const ask = { text: 'select 1', query_timeout: ASK_MS } as pg.QueryConfig;
    asking = setInterval(() => void client.query(ask).catch(lose), ASK_MS);
    const held = `
      select 1 as one from pg_locks
      where locktype = 'advisory' and granted and mode = 'ExclusiveLock' and pid = $${values.length + 1}::int
        and database = (select oid from pg_database where datname = current_database())
        and (classid::bigint, objid::bigint, objsubid) = ${shown}`;
    return await work({
      signal: lost.signal,
      stillHeld: async (tx) => !lost.signal.aborted && (await tx.query(held, [...values, pid])).length > 0,
    });
  } finally {
    clearInterval(asking);
    // The goodbye of a link that is silent would never be answered.
    const ended = client.end().catch(() => undefined);
    if (!lost.signal.aborted) await Promise.race([ended, new Promise((resume) => setTimeout(resume, 1000).unref())]);
  }
}
