import { OffsetOutOfRange, type Broker, type BrokerRecord } from '../../../engines/broker/port';
import type { EventStore } from '../../../engines/event-store/port';
import type { RecordLog } from '../../../engines/records/port';
import { BEGINNING, isEventProjection, isRecordProjection } from '../checkpoint/checkpoints';
import type { Item, Parked } from '../dead-letter/dead-letters';
import { decodeStored } from '../drive/decode';
import { subscribedTypes, splitAtNewerEvent } from '../drive/newer-version';
import type { Projection } from '../../../kernel/projection';

/** Records that an archiver moved out of a topic: from `from` (inclusive) up to `to` (exclusive), in batches. */
export type ReadArchived = (
  topic: string,
  partition: number,
  from: number,
  to: number,
) => AsyncIterable<BrokerRecord[]>;

export interface SourceDeps {
  broker: Broker;
  records: Pick<RecordLog, 'decode'>;
  events: EventStore;
  /** Reads records that the topic no longer holds; without it a rebuild over trimmed history is refused. */
  readArchived?: ReadArchived;
}

/** The earliest records are deleted: a rebuild or replay would silently lose them. */
export class HistoryTruncated extends Error {
  constructor(topic: string, partition: number, earliest: number) {
    super(
      `${topic}/${partition} begins at ${earliest}: records before it are gone from the topic, and no archive holds all of them`,
    );
    this.name = 'HistoryGone';
  }
}

export interface Page {
  items: Item[];
  undecodable: Parked[];
  /** Number of records or events read. */
  read: number;
  /** Position after the page. */
  next: string;
}

/** Source of a projection, read from its beginning. */
export interface RebuildSource {
  engine: string;
  /**
   * Position up to which each partition is replayed: the live checkpoint, or the beginning of a projection without one.
   * @throws HistoryGone
   */
  goal(live: Map<number, string>): Promise<Map<number, string>>;
  /** Records up to the goal; null when they cannot be counted. */
  count(goal: Map<number, string>): number | null;
  /** From `after` (undefined: the beginning) up to `to`. */
  read(partition: number, after: string | undefined, to: string, batch: number): AsyncGenerator<Page, void>;
}

/**
 * Reads records of one partition from `from` to `to` (exclusive): the archive first, then the topic, also while the
 * archiver trims.
 * @throws HistoryGone
 */
export async function* readStored(
  { broker, readArchived }: Pick<SourceDeps, 'broker' | 'readArchived'>,
  topic: string,
  partition: number,
  from: number,
  to: number,
): AsyncGenerator<BrokerRecord[]> {
  let at = from;
  while (at < to) {
    const earliest = (await broker.bounds(topic)).get(partition)?.earliest ?? 0;
    if (at < earliest) {
      if (!readArchived) throw new HistoryTruncated(topic, partition, earliest);
      const end = Math.min(to, earliest);
      yield* readArchived(topic, partition, at, end);
      at = end;
      continue;
    }
    try {
      for await (const some of broker.read(topic, partition, at, to)) {
        yield some;
        at = some[some.length - 1]!.offset + 1;
      }
      return;
    } catch (error) {
      // The topic was trimmed after the read of its bounds: the archive holds the records now.
      if (!(error instanceof OffsetOutOfRange) || !readArchived || at >= error.bounds.earliest) throw error;
    }
  }
}

function fromTopic(p: Projection, { broker, records, readArchived }: SourceDeps): RebuildSource {
  if (!isRecordProjection(p)) throw new Error(`projection ${p.name} does not read a topic`);
  const { topic } = p.from;

  return {
    engine: broker.id,
    async goal(live) {
      const bounds = await broker.bounds(topic);
      const goal = new Map<number, string>();
      for (const [partition, { earliest, next }] of bounds) {
        if (earliest > 0 && !readArchived) throw new HistoryTruncated(topic, partition, earliest);
        // Up to the live checkpoint: the ledger has no later records yet, and the live side continues from there, from
        // the archive where the topic begins later. Without a checkpoint the live side begins at 0; where 0 is deleted
        // it cannot begin, and all of the topic is read here.
        goal.set(partition, live.get(partition) ?? String(earliest > 0 ? next : 0));
      }
      return goal;
    },
    count: (goal) => [...goal.values()].reduce((sum, to) => sum + Number(to), 0),
    async *read(partition, after, to, batch) {
      let held: BrokerRecord[] = [];
      const page = async (taken: BrokerRecord[]): Promise<Page> => {
        return {
          ...(await decodeStored(records, taken)),
          read: taken.length,
          next: String(taken.at(-1)!.offset + 1),
        };
      };
      for await (const some of readStored({ broker, readArchived }, topic, partition, Number(after ?? 0), Number(to))) {
        held = held.length === 0 ? some : held.concat(some);
        while (held.length >= batch) {
          const full = held.slice(0, batch);
          held = held.slice(batch);
          yield await page(full);
        }
      }
      if (held.length > 0) yield await page(held);
    },
  };
}

function fromEvents(p: Projection, { events }: SourceDeps): RebuildSource {
  if (!isEventProjection(p)) throw new Error(`projection ${p.name} does not read domain events`);
  const types = subscribedTypes(p);
  return {
    engine: events.id,
    goal: async (live) => new Map([[0, live.get(0) ?? BEGINNING]]),
    count: () => null,
    async *read(_partition, after, to, batch) {
      if (to === BEGINNING) return;
      let held: Item[] = [];
      const page = (items: Item[], next: string): Page => ({ items, undecodable: [], read: items.length, next });
      for await (const { events: some, position } of events.readAll(
        after === undefined || after === BEGINNING ? null : after,
        { types },
      )) {
        const { events: mine, newer } = splitAtNewerEvent(p, some);
        if (newer) throw newer;
        for (const event of mine) {
          if (events.compare(event.position, to) <= 0) held.push({ kind: 'event', event });
          if (held.length >= batch) {
            yield page(held, event.position);
            held = [];
          }
        }
        if (events.compare(position, to) >= 0) break;
      }
      if (held.length > 0) yield page(held, to);
    },
  };
}

export const REBUILD_SOURCES = { topic: fromTopic, domain_events: fromEvents };
