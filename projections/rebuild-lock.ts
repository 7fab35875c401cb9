import type { Database, Queryable } from '../engines/postgres/port';

/** A rebuild of this projection is running in another process. */
export class RebuildRunning extends Error {
  constructor(name: string) {
    super(`a rebuild of ${name} is running already`);
    this.name = 'RebuildRunning';
  }
}

/** First key of the advisory locks of rebuilds; the second is the hash of the projection's name. */
const REBUILDS = 7_070_003;

/**
 * Runs `work` while no other rebuild of this name runs. The lock belongs to a transaction that does nothing else (it holds
 * neither a transaction id nor a snapshot), so it ends with the process however that ends.
 * @throws RebuildRunning
 */
export function withRebuildLock<T>(db: Database, name: string, work: () => Promise<T>): Promise<T> {
  return db.transaction(async (guard) => {
    await guard.query('set local idle_in_transaction_session_timeout = 0');
    const [lock] = await guard.query('select pg_try_advisory_xact_lock($1, hashtext($2)) as mine', [REBUILDS, name]);
    if (!lock!.mine) throw new RebuildRunning(name);
    return work();
  });
}

/**
 * Keeps rebuilds of this name away until the transaction ends. For changes to a read model that do not come from its
 * source: a dead letter's retry, an erasure, a retention sweep. A running rebuild would lose them.
 * @throws RebuildRunning
 */
export async function keepRebuildsAway(tx: Queryable, name: string): Promise<void> {
  const [lock] = await tx.query('select pg_try_advisory_xact_lock_shared($1, hashtext($2)) as mine', [REBUILDS, name]);
  if (!lock!.mine) throw new RebuildRunning(name);
}
