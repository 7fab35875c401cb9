import type { Broker } from '../../../engines/broker/port';
import type { EventStore } from '../../../engines/event-store/port';
import type { Logger } from '../../../engines/log/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { Wakeups } from '../../../engines/wakeups/port';
import { NotBuilt } from '../../../kernel/errors';
import type { Projection } from '../../../kernel/projection';
import { sourceOf } from '../checkpoint/checkpoints';
import { describe } from '../drive/failures';
import { REPORT_STALE_S } from './states';
import { CHECKPOINT_WAKEUP } from './read-models';

export interface UnbuiltDeps {
  db: Queryable;
  broker: Pick<Broker, 'bounds'>;
  events: Pick<EventStore, 'head'>;
  wakeups: Wakeups;
  log: Logger;
  projections: readonly Projection[];
  /** Interval of the checks while a read model is not built, and otherwise. Default 500 ms and 10 s. */
  look_ms?: number;
  calm_ms?: number;
}

/** Read models that must not be read, as of the last check of this process. */
export interface ReadModelAvailability {
  /** True when the read model is not built yet. */
  has(projection: string): boolean;
  /** Reads the database now. */
  look(): Promise<void>;
  /** Wraps the database for requests: a statement that names a table of such a read model is refused. */
  guard<D extends Database>(db: D): Database;
  close(): void;
}

/**
 * Watches which read models are built. A read model without a checkpoint is not, unless its source is empty: it would
 * have no rows. A built read model stays so for this process, unless its checkpoint states otherwise. Also watches
 * which read models of rights are of a later version and frozen, because no process of that version runs. Decision
 * 0014.
 */
export function createReadModelAvailability(deps: UnbuiltDeps): ReadModelAvailability {
  const { db, projections, wakeups, log, look_ms = 500, calm_ms = 10_000 } = deps;
  const unbuilt = new Map(projections.map((p) => [p.name, namesOf(p)]));
  const frozen = new Map<string, RegExp>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let closed = false;

  async function isEmpty({ from }: Projection): Promise<boolean> {
    if (from.kind === 'domain_events') return (await deps.events.head()) === null;
    return [...(await deps.broker.bounds(from.topic)).values()].every(({ next }) => next === 0);
  }

  async function ask(): Promise<void> {
    const rows = await db.query<{ projection: string; source: string; built: boolean; version: number }>(
      `select projection, source, bool_and(built) as built, max(version) as version from checkpoints
       group by projection, source`,
      [],
      'checkpoints_built',
    );
    const stored = new Map(rows.map((row) => [`${row.projection} ${row.source}`, row]));
    for (const p of projections) {
      const built = stored.get(`${p.name} ${sourceOf(p)}`)?.built ?? (!unbuilt.has(p.name) || (await isEmpty(p)));
      if (built) unbuilt.delete(p.name);
      else unbuilt.set(p.name, namesOf(p));
    }
    const later = projections.filter(
      (p) => p.rights && (stored.get(`${p.name} ${sourceOf(p)}`)?.version ?? 0) > p.version,
    );
    const driven = later.length > 0 ? await drivenAtLiveVersion(db) : new Set<string>();
    for (const p of projections) {
      if (later.includes(p) && !driven.has(p.name)) frozen.set(p.name, namesOf(p));
      else frozen.delete(p.name);
    }
  }

  const mayRefuse = () => unbuilt.size + frozen.size > 0;
  const look = () => (looking ??= ask().finally(() => (looking = undefined)));
  const next = () => {
    if (closed) return;
    timer = setTimeout(() => void again(), mayRefuse() ? look_ms : calm_ms);
    timer.unref();
  };
  const again = async () => {
    await look().catch((error: unknown) =>
      log.warn({ err: describe(error) }, 'which read models are built is unknown'),
    );
    next();
  };
  const off = wakeups.on(CHECKPOINT_WAKEUP, () => {
    if (mayRefuse()) void look().catch(() => undefined);
  });
  next();

  const refuse = (text: string): void => {
    for (const [name, names] of unbuilt) if (names.test(text)) throw new NotBuilt(name);
    for (const [name, names] of frozen) if (names.test(text)) throw new NotBuilt(name, FROZEN);
  };
  const guarded = (on: Queryable): Queryable => ({
    query: async (text, values, name) => {
      if (mayRefuse()) refuse(text);
      return on.query(text, values, name);
    },
  });

  return {
    has: (projection) => unbuilt.has(projection),
    look,
    guard: (on) => ({
      ...guarded(on),
      transaction: (work, last) => on.transaction((tx) => work(mayRefuse() ? guarded(tx) : tx), last),
      hold: (lock, work) => on.hold(lock, work),
    }),
    close() {
      closed = true;
      clearTimeout(timer);
      off();
    },
  };
}

const FROZEN = 'is of a later version and no process of that version runs';

/** Names of projections that a process drives, or stands by for, at the version of their live rows. */
async function drivenAtLiveVersion(db: Queryable): Promise<Set<string>> {
  const rows = await db.query<{ projection: string }>(
    `select distinct s.projection from projection_states s join checkpoints c using (projection, version)
     where s.state <> 'ended' and s.observed_at > clock_timestamp() - make_interval(secs => $1)`,
    [REPORT_STALE_S],
    'projections_driven',
  );
  return new Set(rows.map(({ projection }) => projection));
}

/**
 * Matches any of the projection's tables as a word of a statement. A column of the same name is refused too; for the
 * time of a build that is the lesser evil.
 */
const namesOf = ({ tables }: Projection): RegExp =>
  tables.length === 0 ? NO_NAME : new RegExp(`\\b(?:${tables.join('|')})\\b`);
/** A projection without tables has nothing to protect; an empty alternation would match every statement. */
const NO_NAME = /(?!)/;
