import type { Database, Queryable } from '../../../engines/postgres/port';
import { applyCarefully, applyPlainly, DataFailure, type Applied } from './apply';
import { moveCheckpoints, type Move } from '../checkpoint/checkpoints';
import type { Item, Parked } from '../dead-letter/dead-letters';
import { isConflict } from '../../../kernel/failures';
import { outboxStatement } from '../outbox/outbox';
import type { ApplyMode, Projection } from '../../../kernel/projection';

export interface Batch {
  items: Item[];
  /** Records that could not be decoded. */
  undecodable: Parked[];
  moves: Move[];
  /** Erasures per partition before the batch was decoded; absent: its decoding opened no personal part of a record. */
  erasures?: ReadonlyMap<number, number>;
  /** True before the end of a silent build: none of the batch's messages is announced. */
  silent?: boolean;
  /** See {@link outboxStatement}. */
  trace?: string | null;
}

/** Immediate retries of a batch after a deadlock or a serialization failure. */
const CONTENTION_RETRIES = 3;

/**
 * The one transaction of design §7: fence and move the checkpoint, apply, park poison records, write the outbox,
 * commit. Effects are therefore exactly once: a crash in between rolls all of it back.
 * @throws CheckpointLost when another worker moved the checkpoint; database errors unchanged
 */
export async function commitBatch(
  db: Database,
  p: Projection,
  engine: string,
  batch: Batch,
  idle_ms?: number,
  jobs?: Pick<ApplyMode, 'enqueue' | 'whenCounted'>,
): Promise<Applied> {
  const attempt = (apply: (tx: Queryable) => Promise<Applied>) =>
    db.transaction(
      async (tx) => {
        // Sent together: the fence's statement runs first, and a lost fence rolls back the rest.
        const [moved, applied] = await Promise.allSettled([
          moveCheckpoints(tx, p, engine, batch.moves, idle_ms),
          apply(tx),
        ]);
        if (moved.status === 'rejected') throw moved.reason;
        if (applied.status === 'rejected') throw applied.reason;
        return batch.silent ? { ...applied.value, messages: [] } : applied.value;
      },
      ({ messages }) => outboxStatement(messages, batch.trace),
    );
  const silent = batch.silent ?? false;
  const mode: ApplyMode = { rebuilding: false, silent, ...(!silent && jobs) };
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt((tx) => applyPlainly(p, batch.items, batch.undecodable, tx, mode));
    } catch (error) {
      if (error instanceof DataFailure) break;
      if (!isConflict(error) || tries >= CONTENTION_RETRIES) throw error;
    }
  }
  return attempt((tx) => applyCarefully(p, batch.items, batch.undecodable, tx, mode));
}
