import type { Broker } from '../broker/port';
import type { EventStore } from '../event-store/port';
import { sha256Of } from './logs';
import type { BackedUpPartition, Manifest } from './manifest';

/**
 * Restore of a log. `tables`: with the database. `write`: into the configured engine, which is empty. `keep`: the
 * configured engine is the one that was backed up and still has the whole log; later records are applied afterwards.
 */
export type LogRestore = 'tables' | 'write' | 'keep';

export interface LogRestores {
  topics: LogRestore;
  events: LogRestore;
}

/** Engines outside the database for the restored installation; default: its database. */
export interface OutsideEngines {
  broker?: Broker;
  events?: EventStore;
  /** Topics of this program; `partitions` is the number for new ones. */
  topics: readonly string[];
  partitions: number;
}

/**
 * Decides before anything is restored. Creates missing topics.
 * @throws Error in one line when an engine has other content than the backup, or no longer all of it
 */
export async function logRestoresOf(manifest: Manifest, outside: OutsideEngines): Promise<LogRestores> {
  return {
    topics: await restoreOfTopics(manifest, outside),
    events: await restoreOfEvents(manifest, outside.events),
  };
}

async function restoreOfTopics({ engines, logs }: Manifest, outside: OutsideEngines): Promise<LogRestore> {
  const { broker } = outside;
  if (!broker) {
    for (const { topic, partitions } of logs?.topics ?? []) sameNumber(topic, outside.partitions, partitions.length);
    return logs?.topics ? 'write' : 'tables';
  }
  const foreign = logs?.topics?.find(({ topic }) => !outside.topics.includes(topic));
  if (foreign) throw new Error(`the backup names a topic that this program does not know: ${foreign.topic}`);
  const backed_up = logs?.topics ?? outside.topics.map((topic) => ({ topic, partitions: [] as BackedUpPartition[] }));
  const filled: typeof backed_up = [];
  for (const one of backed_up) {
    await broker.ensureTopics([one.topic], one.partitions.length || outside.partitions);
    const bounds = await broker.bounds(one.topic);
    if (one.partitions.length > 0) sameNumber(one.topic, bounds.size, one.partitions.length);
    if ([...bounds.values()].some(({ next }) => next > 0)) filled.push(one);
  }
  if (filled.length === 0) return 'write';
  if (broker.id !== engines.broker)
    throw new Error(
      `topic ${filled[0]!.topic} is not empty, nor of the log that was backed up: restore into a new broker`,
    );
  for (const { topic, partitions } of backed_up) await assertHeld(broker, topic, partitions);
  return 'keep';
}

/** @throws Error with the setting to change, when the numbers of partitions differ */
export function sameNumber(topic: string, there: number, wanted: number): void {
  if (there === wanted) return;
  throw new Error(
    `topic ${topic} has ${there} partitions instead of ${wanted}: set broker.partitions and make it anew`,
  );
}

async function assertHeld(broker: Broker, topic: string, partitions: readonly BackedUpPartition[]): Promise<void> {
  const bounds = await broker.bounds(topic);
  for (const { partition, next, last } of partitions) {
    const there = bounds.get(partition)!;
    const lost = `${topic}/${partition} of this broker no longer holds what was backed up`;
    if (there.next < next)
      throw new Error(`${lost}: it ends at ${there.next}, the backup at ${next}; restore into a new broker`);
    // A record that the archiver has trimmed meanwhile cannot be compared.
    if (!last || last.offset < there.earliest) continue;
    for await (const [record] of broker.read(topic, partition, last.offset, last.offset + 1)) {
      if (sha256Of(record!.value) !== last.sha256)
        throw new Error(`${lost}: its record ${last.offset} is another one; restore into a new broker`);
    }
  }
}

async function restoreOfEvents({ engines, logs }: Manifest, events: EventStore | undefined): Promise<LogRestore> {
  const backed_up = logs?.events ?? null;
  if (!events) return backed_up ? 'write' : 'tables';
  if ((await events.head()) === null) return 'write';
  if (!backed_up || events.id !== engines.events)
    throw new Error('the event store is not empty, nor the one that was backed up: restore into a new one');
  const { last } = backed_up;
  const [there] = last ? await events.read(last.stream, last.revision) : [];
  if (last && there?.id !== last.id)
    throw new Error(
      `the event store no longer holds what was backed up: ${last.stream}@${last.revision} is not there; restore into a new one`,
    );
  return 'keep';
}
