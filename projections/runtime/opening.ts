import type { Broker } from '../../engines/broker/port';
import type { EventStore } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import type { Projection } from '../../kernel/projection';
import { BEGINNING, openCheckpoints, readCheckpoints, RebuildNeeded, type Checkpoint } from './checkpoints';
import { HistoryGone, type ReadArchived } from './rebuild-source';
import type { Silence } from './silence';

export interface OpeningDeps {
  db: Queryable;
  broker: Pick<Broker, 'id' | 'bounds'>;
  events: Pick<EventStore, 'id' | 'head'>;
  /** Absent: a projection whose topic has lost its beginning cannot be built. */
  readArchived?: ReadArchived;
}

/**
 * The projection's checkpoints, made where missing; one that has none yet is built silently to where its source ends
 * now.
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
    if (lost && !readArchived) throw new HistoryGone(topic, partition, earliest);
  }
  const ends = new Map([...bounds].map(([partition, { next }]) => [partition, String(next)]));
  return openCheckpoints(db, p, broker.id, [...bounds.keys()], '0', ends);
}

/**
 * Opens what was never driven, so that a read model over an empty source is there from the start.
 * @throws what {@link openProjection} throws
 */
export async function openFresh(deps: OpeningDeps, p: Projection): Promise<void> {
  if ((await readCheckpoints(deps.db, p)).size === 0) await openProjection(deps, p);
}

/**
 * Opens the projection for a consumer, which learns up to where it is built silently.
 * @throws EngineMismatch, Outdated, Superseded, RebuildNeeded
 */
export async function openToDrive(
  deps: OpeningDeps,
  p: Projection,
  silence: Silence,
): Promise<Map<number, Checkpoint>> {
  try {
    const opened = await openProjection(deps, p);
    silence.learn(opened.values());
    return opened;
  } catch (error) {
    throw toRebuild(p, error);
  }
}

/** RebuildNeeded for a history that is gone; any other error as it is. */
export const toRebuild = (p: Projection, error: unknown): unknown =>
  error instanceof HistoryGone ? new RebuildNeeded(p.name, error.message) : error;
