import type { Broker } from '../../engines/broker/port';
import type { EventStore } from '../../engines/event-store/port';
import type { Logger } from '../../engines/log/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { NotBuilt } from '../../kernel/errors';
import type { Projection } from '../../kernel/projection';
import { sourceOf } from './checkpoints';
import { describe } from './failures';
import { CHECKPOINT_WAKEUP } from './read-models';

export interface UnbuiltDeps {
  db: Queryable;
  broker: Pick<Broker, 'bounds'>;
  events: Pick<EventStore, 'head'>;
  wakeups: Wakeups;
  log: Logger;
  projections: readonly Projection[];
  /** How often it is looked while something is not built, and otherwise. Default 500 ms and 10 s. */
  look_ms?: number;
  calm_ms?: number;
}

/** Which read models are not built yet, as this process last saw it. */
export interface Unbuilt {
  has(projection: string): boolean;
  /** Asks the database now. */
  look(): Promise<void>;
  /** The database as requests may use it: a statement that names a table of an unbuilt read model is refused. */
  guard<D extends Database>(db: D): Database;
  close(): void;
}

/**
 * Watches which read models are built. One without a checkpoint is not, unless its source is empty: nothing would be in
 * it. What was built stays so for this process; only a checkpoint that says otherwise takes it back. Decision 0014.
 */
export function createUnbuilt(deps: UnbuiltDeps): Unbuilt {
  const { db, projections, wakeups, log, look_ms = 500, calm_ms = 10_000 } = deps;
  const unbuilt = new Map(projections.map((p) => [p.name, namesOf(p)]));
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let closed = false;

  async function isEmpty({ from }: Projection): Promise<boolean> {
    if (from.kind === 'domain_events') return (await deps.events.head()) === null;
    return [...(await deps.broker.bounds(from.topic)).values()].every(({ next }) => next === 0);
  }

  async function ask(): Promise<void> {
    const rows = await db.query<{ projection: string; source: string; built: boolean }>(
      'select projection, source, bool_and(built) as built from checkpoints group by projection, source',
      [],
      'checkpoints_built',
    );
    const stored = new Map(rows.map(({ projection, source, built }) => [`${projection} ${source}`, built]));
    for (const p of projections) {
      const built = stored.get(`${p.name} ${sourceOf(p)}`) ?? (!unbuilt.has(p.name) || (await isEmpty(p)));
      if (built) unbuilt.delete(p.name);
      else unbuilt.set(p.name, namesOf(p));
    }
  }

  const look = () => (looking ??= ask().finally(() => (looking = undefined)));
  const next = () => {
    if (closed) return;
    timer = setTimeout(() => void again(), unbuilt.size > 0 ? look_ms : calm_ms);
    timer.unref();
  };
  const again = async () => {
    await look().catch((error: unknown) =>
      log.warn({ err: describe(error) }, 'which read models are built is unknown'),
    );
    next();
  };
  const off = wakeups.on(CHECKPOINT_WAKEUP, () => {
    if (unbuilt.size > 0) void look().catch(() => undefined);
  });
  next();

  const refuse = (text: string): void => {
    for (const [name, names] of unbuilt) if (names.test(text)) throw new NotBuilt(name);
  };
  const guarded = (on: Queryable): Queryable => ({
    query: async (text, values, name) => {
      if (unbuilt.size > 0) refuse(text);
      return on.query(text, values, name);
    },
  });

  return {
    has: (projection) => unbuilt.has(projection),
    look,
    guard: (on) => ({
      ...guarded(on),
      transaction: (work, last) => on.transaction((tx) => work(unbuilt.size > 0 ? guarded(tx) : tx), last),
      hold: (lock, work) => on.hold(lock, work),
    }),
    close() {
      closed = true;
      clearTimeout(timer);
      off();
    },
  };
}

/**
 * Any of the projection's tables as a word of a statement. A column of the same name is refused with it: for the time
 * of a build that is the lesser evil.
 */
const namesOf = ({ tables }: Projection): RegExp =>
  tables.length === 0 ? NO_NAME : new RegExp(`\\b(?:${tables.join('|')})\\b`);
/** A projection without tables has nothing that could be read too early; a choice among no names would fit all. */
const NO_NAME = /(?!)/;
