import { slices } from '../../kernel/collector';
import { pause } from '../../kernel/signal';
import type { Broker, BrokerRecord } from '../broker/port';
import type { EventStore } from '../event-store/port';
import type { Database } from '../postgres/port';
import { sameNumber } from './log-restores';
import type { EventSource, TopicSource } from './log-sources';
import { movePlaces, placesOf } from './places';
import { DOMAIN_EVENTS } from '../../domain/records';

export interface RestoreLogsOptions {
  db: Database;
  broker: Broker;
  /** Takes events as they were stored. */
  events: EventStore;
  /** Identities of the logs that the database's checkpoints name. */
  from: { broker: string; events: string };
  report(what: string): void;
  /** How long a broker that refuses is tried again, milliseconds. Default 120,000. */
  patience_ms?: number;
  /**
   * How long a request that was given up may still be on its way, milliseconds. Default 12,000: its own time-out, and
   * some.
   */
  late_ms?: number;
}

/**
 * Writes a topic through the configured broker, which may be another one than before and holds nothing of it, and moves
 * checkpoints and dead letters to the places that the same records have there.
 * @throws Error when the source is damaged, or the broker does not take what it is given
 */
export async function restoreTopic(options: RestoreLogsOptions, { topic, partitions }: TopicSource): Promise<void> {
  await options.broker.ensureTopics([topic], partitions.length);
  sameNumber(topic, (await options.broker.bounds(topic)).size, partitions.length);
  for (const { partition, read } of partitions) await restorePartition(options, topic, partition, read());
}

async function restorePartition(
  options: RestoreLogsOptions,
  topic: string,
  partition: number,
  source: AsyncIterable<BrokerRecord[]>,
): Promise<void> {
  const { broker, db } = options;
  const from = { engine: options.from.broker, source: topic, partition };
  // A checkpoint is the next offset to read, a dead letter the record's own: both become the place of the first record
  // not below.
  const waiting = (await placesOf(db, from)).sort((a, b) => Number(a) - Number(b));
  const moved = new Map<string, string>();
  let end = (await broker.bounds(topic)).get(partition)!.next;
  for await (const records of source) {
    for (const group of slices(records, GROUP, ({ value }) => ({ items: 1, bytes: value.length }))) {
      const first = end;
      end = await write(options, topic, partition, group, first);
      for (const [index, { offset }] of group.entries()) {
        while (waiting.length > 0 && Number(waiting[0]) <= offset) moved.set(waiting.shift()!, String(first + index));
      }
    }
    options.report(`${topic}/${partition}`);
  }
  for (const place of waiting) moved.set(place, String(end));
  await movePlaces(db, from, broker.id, moved);
}

/** Bounds of one publish: it then leaves in one send, which a broker takes whole or not at all. */
const GROUP = { items: 1000, bytes: 1024 * 1024 };

/** A leader that has just taken over may report an end below the true one for a moment. */
const LOOKS = 6;
const LOOK_MS = 500;

/**
 * Publishes the group at the partition's end and returns the new end. Nobody else writes: what a publish of unknown
 * outcome left shows in how far the end moved. A group that was stored twice is as harmless as any record that a
 * producer stored twice; its first copy counts.
 */
async function write(
  { broker, patience_ms = 120_000, late_ms = 12_000 }: RestoreLogsOptions,
  topic: string,
  partition: number,
  group: readonly BrokerRecord[],
  first: number,
): Promise<number> {
  const give_up_at = Date.now() + patience_ms;
  const records = group.map(({ key, value, headers }) => ({ key, value, headers }));
  for (let publish = true; ;) {
    try {
      if (publish) await broker.publish(topic, records);
      let grown = 0;
      for (let looks = 0; looks < LOOKS; looks += 1) {
        grown = (await broker.bounds(topic)).get(partition)!.next - first;
        if (grown > 0 && grown % group.length === 0) return first + grown;
        if (!publish && grown === 0) break;
        await pause(LOOK_MS);
      }
      if (publish || grown > 0) throw new Misplaced(topic, partition, group.length, grown);
      publish = true;
    } catch (error) {
      if (error instanceof Misplaced || Date.now() > give_up_at) throw error;
      // What became of it is unknown: looked for before it is sent again.
      publish = false;
      await pause(late_ms);
    }
  }
}

/** Keys lie in other partitions there, or somebody else writes. */
class Misplaced extends Error {
  constructor(topic: string, partition: number, sent: number, came: number) {
    super(`${topic}/${partition}: ${came} records came of ${sent} that were written; restore into a new broker`);
  }
}

/**
 * Appends the domain events to the configured event store, which may be another one than before and is empty: ids,
 * revisions and metadata stay, the time of recording does not. Checkpoints and dead letters move to the places that the
 * same events have there.
 * @throws Error when the source is damaged
 */
export async function restoreEvents(
  { db, events, from, report }: RestoreLogsOptions,
  { places, read }: EventSource,
): Promise<void> {
  // After how many events each place lies, in order; '' is before the first one.
  const waiting = Object.entries(places).sort(([, a], [, b]) => a - b);
  const moved = new Map([['', '']]);
  let last = '';
  let restored = 0;
  const placeReached = () => {
    while (waiting.length > 0 && waiting[0]![1] <= restored) moved.set(waiting.shift()![0], last);
  };
  placeReached();
  for await (const { id, type, data, stream, revision, metadata } of read()) {
    const expected = revision === 0 ? 'none' : revision - 1;
    last = (await events.append([{ stream, expected, events: [{ id, type, data }] }], metadata)).position;
    restored += 1;
    placeReached();
    if (restored % 100 === 0) report('domain events');
  }
  await movePlaces(db, { engine: from.events, source: DOMAIN_EVENTS, partition: 0 }, events.id, moved);
}
