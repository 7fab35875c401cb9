import type { JobTools } from '../../access/job';
import type { ReactionTools } from '../../access/reactor';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { actingFor } from './acting';
import type { Jobs } from './jobs';

/** A write that belongs to the transaction that moves a reactor's checkpoint. */
export interface Write {
  run(tx: Queryable): Promise<unknown>;
  /** There is a job to run after the commit. */
  wakes?: boolean;
}

export interface ToolsDeps {
  db: Database;
  events: EventStore;
  jobs: Pick<Jobs<JobTools>, 'enqueue' | 'wake'>;
}

/**
 * The tools of one reaction: what it keeps and enqueues is collected in `writes`. `before` runs before it reads. Once
 * `over` is aborted they refuse: the event may have been reacted to again by then, and what follows it too.
 */
export function toolsFor(
  deps: ToolsDeps,
  reactor: string,
  event: StoredEvent,
  writes: Write[],
  before: () => Promise<void>,
  over?: AbortSignal,
): ReactionTools {
  const { db, events, jobs } = deps;
  const now = new Date();
  const act = actingFor(reactor, event, events, now.getTime());
  return {
    act: async (...asked) => {
      over?.throwIfAborted();
      return act(...asked);
    },
    db: {
      query: async (text, values, name) => {
        over?.throwIfAborted();
        await before();
        return db.query(text, values, name);
      },
    },
    keep: (text, values) => void writes.push({ run: (tx) => tx.query(text, values) }),
    enqueue: (declared, one) => void writes.push({ run: (tx) => jobs.enqueue(tx, declared, one), wakes: true }),
    now: now.toISOString(),
  };
}
