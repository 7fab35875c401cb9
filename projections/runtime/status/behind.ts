import type { EventStore } from '../../../engines/event-store/port';
import type { Queryable } from '../../../engines/postgres/port';
import { DOMAIN_EVENTS } from '../../../domain/common/records';
import type { EventProjection } from '../../../kernel/projection';
import { BEGINNING } from '../checkpoint/checkpoints';

/** Milliseconds that an answer is reused. */
const REUSED_MS = 1_000;

/**
 * Returns whether the log has events of the projection's types behind its checkpoint. Callers within a second share one
 * read of the database.
 */
export function createBehind(
  { db, events }: { db: Queryable; events: Pick<EventStore, 'readAll'> },
  { name, from: { types } }: Pick<EventProjection, 'name' | 'from'>,
  now = () => performance.now(),
): () => Promise<boolean> {
  let looked_at = -Infinity;
  let answer: Promise<boolean> | undefined;

  async function look(): Promise<boolean> {
    const [row] = await db.query<{ position: string }>(
      'select position from checkpoints where projection = $1 and source = $2',
      [name, DOMAIN_EVENTS],
      'checkpoint-behind',
    );
    const after = row === undefined || row.position === BEGINNING ? null : row.position;
    for await (const { events: missing } of events.readAll(after, { types })) if (missing.length > 0) return true;
    return false;
  }

  return () => {
    if (answer === undefined || now() - looked_at >= REUSED_MS) {
      looked_at = now();
      answer = look();
      // A failure reaches the callers of this read alone.
      answer.catch(() => (answer = undefined));
    }
    return answer;
  };
}
