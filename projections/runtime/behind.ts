import type { EventStore } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import { DOMAIN_EVENTS } from '../../domain/records';
import type { EventProjection } from '../../kernel/projection';
import { BEGINNING } from './checkpoints';

/** How long an answer is reused, milliseconds. */
const REUSED_MS = 1_000;

/**
 * Answers whether the log has events of the projection's types behind its checkpoint. Callers within a second share one
 * look at the database.
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
      // A failure is the callers' of this look, and of no later one.
      answer.catch(() => (answer = undefined));
    }
    return answer;
  };
}
