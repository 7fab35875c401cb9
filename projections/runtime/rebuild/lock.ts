import { type HeldLock, LOCK_PAIRS, LockTaken } from '../../../engines/locks/port';
import { endBuild } from './build-progress';
import type { Database, Queryable } from '../../../engines/postgres/port';

/** A rebuild of this projection is running in another process. */
export class RebuildRunning extends Error {
  constructor(name: string) {
    super(`a rebuild of ${name} is running already`);
    this.name = 'RebuildRunning';
  }
}

/**
 * Runs `work` while no other rebuild of this name runs. A session lock instead of a long transaction, which would raise
 * an alert. When the lock is lost all the same, an erasure may have changed the live rows: the rebuilt tables must then
 * not replace them.
 * @throws RebuildRunning
 */
export async function withRebuildLock<T>(db: Database, name: string, work: (lock: HeldLock) => Promise<T>): Promise<T> {
  try {
    return await db.hold({ pair: LOCK_PAIRS.rebuild, name }, work);
  } catch (error) {
    if (error instanceof LockTaken) throw new RebuildRunning(name);
    throw error;
  }
}

/**
 * Excludes rebuilds of this name until the transaction ends, and discards an interrupted one, which then starts over.
 * For changes to a read model that do not come from its source: a dead letter's retry, an erasure, a retention sweep. A
 * running rebuild would lose these.
 * @throws RebuildRunning
 */
export async function keepRebuildsAway(tx: Queryable, name: string): Promise<void> {
  const [lock] = await tx.query('select pg_try_advisory_xact_lock_shared($1, hashtext($2)) as mine', [
    LOCK_PAIRS.rebuild,
    name,
  ]);
  if (!lock!.mine) throw new RebuildRunning(name);
  await endBuild(tx, name);
}
