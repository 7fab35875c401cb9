import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { Blobs } from '../blobs/port';
import type { Broker, BrokerRecord } from '../broker/port';
import type { EventStore, StoredEvent } from '../event-store/port';
import type { Database } from '../postgres/port';
import { openFile } from './files';
import type { RecordCodec } from './logs';
import type { Manifest } from './manifest';
import { placesOf } from './places';
import { DOMAIN_EVENTS } from '../../domain/common/records';

/** Content of a topic, to be written to another broker. */
export interface TopicSource {
  topic: string;
  partitions: {
    partition: number;
    /** @throws Error when it does not hold all that it should */
    read(): AsyncIterable<BrokerRecord[]>;
  }[];
}

/** Backed-up domain events, in order. */
export interface EventSource {
  /** Positions in the database, each with the number of events up to it. */
  places: Readonly<Record<string, number>>;
  /** @throws Error when it does not hold all that it should */
  read(): AsyncIterable<StoredEvent>;
}

/** Topics that the backup has as files. */
export function topicsInFiles(from: Blobs, manifest: Manifest, codec: RecordCodec): TopicSource[] {
  return (manifest.logs?.topics ?? []).map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(({ partition, records, file }) => ({
      partition,
      async *read() {
        let count = 0;
        for await (const some of codec.decode(await openFile(from, file), topic, partition)) {
          count += some.length;
          yield some;
        }
        if (count !== records) throw new Error(`${file.key} is damaged: ${count} of ${records} records`);
      },
    })),
  }));
}

/** Domain events that the backup has as a file. */
export function eventsInFile(from: Blobs, events: NonNullable<NonNullable<Manifest['logs']>['events']>): EventSource {
  const { file, places } = events;
  return {
    places,
    async *read() {
      let count = 0;
      const gunzip = createGunzip();
      const read = pipeline(await openFile(from, file), gunzip);
      read.catch(() => undefined); // the lines of a failed stream just end; awaited below
      for await (const line of createInterface({ input: gunzip, crlfDelay: Infinity })) {
        count += 1;
        yield JSON.parse(line) as StoredEvent;
      }
      if (count !== events.count) throw new Error(`${file.key} is damaged: ${count} of ${events.count} events`);
      await read;
    },
  };
}

/** Topics restored as tables of the database. `read` returns a partition's records, including archived ones. */
export async function topicsInTables(
  broker: Broker,
  topics: readonly string[],
  read: (topic: string, partition: number, to: number) => AsyncIterable<BrokerRecord[]>,
): Promise<TopicSource[]> {
  const sources: TopicSource[] = [];
  for (const topic of topics) {
    const bounds = await broker.bounds(topic);
    sources.push({
      topic,
      partitions: [...bounds].map(([partition, { next }]) => ({ partition, read: () => read(topic, partition, next) })),
    });
  }
  return sources;
}

/** Domain events restored as a table of the database. */
export async function eventsInTable(events: EventStore, db: Database): Promise<EventSource> {
  const named = await placesOf(db, { engine: events.id, source: DOMAIN_EVENTS, partition: 0 });
  const places: Record<string, number> = {};
  // The table's positions have no holes, so that each is the number of its event.
  for (const position of named) if (position !== '') places[position] = Number(position);
  return {
    places,
    async *read() {
      for await (const batch of events.readAll(null)) yield* batch.events;
    },
  };
}
