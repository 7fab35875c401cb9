import type { JobTools } from '../../app/job';
import type { ReactionTools } from '../../app/reactor';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import { actingFor } from './acting';
import type { Jobs } from './jobs';
import type { Write } from './kept-writes';

export interface ToolsDeps {
  db: Database;
  events: EventStore;
  jobs: Pick<Jobs<JobTools>, 'enqueue' | 'cancel' | 'wake'>;
}

/**
 * Tools of one reaction. Its writes and jobs are collected in `writes`; `before` runs before each query. Once `over` is
 * aborted the tools refuse, because the event, and later ones, may have been processed again by then.
 */
export function toolsFor(
  deps: ToolsDeps,
  reactor: string,
  event: StoredEvent,
  writes: Write[],
  before: (query: string) => Promise<void>,
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
        await before(text);
        return db.query(text, values, name);
      },
    },
    keep: (text, values) => void writes.push({ text, run: (tx) => tx.query(text, values) }),
    enqueue: (declared, one) => void writes.push({ run: (tx) => jobs.enqueue(tx, declared, one), wakes: true }),
    cancel: (owner) => void writes.push({ run: (tx) => jobs.cancel(tx, owner) }),
    now: now.toISOString(),
  };
}
