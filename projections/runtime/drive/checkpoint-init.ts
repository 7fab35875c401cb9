import type { Broker } from '../../../engines/broker/port';
import type { EventStore } from '../../../engines/event-store/port';
import type { Queryable } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import { BEGINNING, openCheckpoints, readCheckpoints, RebuildNeeded, type Checkpoint } from '../checkpoint/checkpoints';
import { HistoryTruncated, type ReadArchived } from '../rebuild/source';
import type { InitialBuildBoundary } from './initial-build';

export interface OpeningDeps {
  db: Queryable;
  broker: Pick<Broker, 'id' | 'bounds'>;
  events: Pick<EventStore, 'id' | 'head'>;
  /** Without it a projection whose topic was trimmed cannot be built. */
  readArchived?: ReadArchived;
}

/**
 * Returns the projection's checkpoints and makes missing ones; a projection without any is built silently up to the
 * present end of its source.
 * @throws EngineMismatch, Outdated, Superseded, HistoryGone
 */
export async function openProjection(deps: OpeningDeps, p: Projection): Promise<Map<number, Checkpoint>> {
  const { db, broker, events, readArchived } = deps;
  if (p.from.kind === 'domain_events') {
    const ends = new Map([[0, (await events.head()) ?? BEGINNING]]);
    return openCheckpoints(db, p, events.id, [0], BEGINNING, ends);
  }
  const { topic } = p.from;
  const bounds = await broker.bounds(topic);
  const stored = await readCheckpoints(db, p);
  for (const [partition, { earliest }] of bounds) {
    const lost = earliest > Number(stored.get(partition)?.position ?? 0);
    if (lost && !readArchived) throw new HistoryTruncated(topic, partition, earliest);
  }
  const ends = new Map([...bounds].map(([partition, { next }]) => [partition, String(next)]));
  return openCheckpoints(db, p, broker.id, [...bounds.keys()], '0', ends);
}

/**
 * Opens a projection without checkpoints, so that a read model over an empty source exists from the start.
 * @throws errors of {@link openProjection}
 */
export async function initialiseCheckpoint(deps: OpeningDeps, p: Projection): Promise<void> {
  if ((await readCheckpoints(deps.db, p)).size === 0) await openProjection(deps, p);
}

/**
 * Opens the projection for a consumer, and loads the ends of its silent build.
 * @throws EngineMismatch, Outdated, Superseded, RebuildNeeded
 */
export async function openToDrive(
  deps: OpeningDeps,
  p: Projection,
  silence: InitialBuildBoundary,
): Promise<Map<number, Checkpoint>> {
  try {
    const opened = await openProjection(deps, p);
    silence.learn(opened.values());
    return opened;
  } catch (error) {
    throw rebuildRequired(p, error);
  }
}

/** Converts HistoryGone to RebuildNeeded; returns any other error unchanged. */
export const rebuildRequired = (p: Projection, error: unknown): unknown =>
  error instanceof HistoryTruncated ? new RebuildNeeded(p.name, error.message) : error;
