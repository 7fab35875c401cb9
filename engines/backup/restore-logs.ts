import { slices } from '../../lib/async/collector';
import { pause } from '../../lib/async/signal';
import type { Broker, BrokerRecord } from '../broker/port';
import { type EventStore, RECORDED_AT } from '../event-store/port';
import type { Database } from '../postgres/port';
import { sameNumber } from './log-restores';
import type { EventSource, TopicSource } from './log-sources';
import { movePlaces, placesOf } from './places';
import { DOMAIN_EVENTS } from '../../domain/common/records';

export interface RestoreLogsOptions {
  db: Database;
  broker: Broker;
  /** Accepts events in their stored form. */
  events: EventStore;
  /** Identities of the logs in the database's checkpoints. */
  from: { broker: string; events: string };
  report(what: string): void;
  /** Milliseconds for which publishes to a refusing broker are retried. Default 120,000. */
  patience_ms?: number;
  /**
   * Milliseconds within which an abandoned request may still arrive. Default 12,000, above its own timeout.
   */
  late_ms?: number;
}

/**
 * Writes a topic to the configured broker, which may be another one than before and has no records of it, and moves
 * checkpoints and dead letters to the offsets of the same records there.
 * @throws Error when the source is damaged, or the broker does not accept the records
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
  // A checkpoint is the next offset to read, a dead letter the record's own: both become the new offset of the first
  // record at or after it.
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

/** Bounds of a publish, so that it is one send, which a broker stores whole or not at all. */
const GROUP = { items: 1000, bytes: 1024 * 1024 };

/** A leader that has just taken over may report an end below the true one for a moment. */
const LOOKS = 6;
const LOOK_MS = 500;

/**
 * Publishes the group at the partition's end and returns the new end. Because there is no other writer, the new end
 * shows whether a publish with an unknown outcome was stored. A group that was stored twice is as harmless as any
 * record that a producer stored twice; its first copy counts.
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
      // The outcome is unknown: the end is read before the group is sent again.
      publish = false;
      await pause(late_ms);
    }
  }
}

/** The broker maps keys to other partitions, or another writer is active. */
class Misplaced extends Error {
  constructor(topic: string, partition: number, sent: number, came: number) {
    super(`${topic}/${partition}: ${came} records came of ${sent} that were written; restore into a new broker`);
  }
}

/**
 * Appends the domain events to the configured event store, which may be another one than before and is empty: ids,
 * revisions, metadata and the time of recording stay. Checkpoints and dead letters move to the positions of the same
 * events there.
 * @throws Error when the source is damaged
 */
export async function restoreEvents(
  { db, events, from, report }: RestoreLogsOptions,
  { places, read }: EventSource,
): Promise<void> {
  // Positions in the order of the number of events up to them; '' is before the first event.
  const waiting = Object.entries(places).sort(([, a], [, b]) => a - b);
  const moved = new Map([['', '']]);
  let last = '';
  let restored = 0;
  const placeReached = () => {
    while (waiting.length > 0 && waiting[0]![1] <= restored) moved.set(waiting.shift()![0], last);
  };
  placeReached();
  for await (const { id, type, data, stream, revision, metadata, recorded_at } of read()) {
    const expected = revision === 0 ? 'none' : revision - 1;
    const at = { ...metadata, [RECORDED_AT]: recorded_at };
    last = (await events.append([{ stream, expected, events: [{ id, type, data }] }], at)).position;
    restored += 1;
    placeReached();
    if (restored % 100 === 0) report('domain events');
  }
  await movePlaces(db, { engine: from.events, source: DOMAIN_EVENTS, partition: 0 }, events.id, moved);
}
