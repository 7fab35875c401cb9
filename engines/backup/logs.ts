import { createHash } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Blobs } from '../blobs/port';
import type { Broker, BrokerRecord } from '../broker/port';
import type { EventStore, StoredEvent } from '../event-store/port';
import type { Queryable } from '../postgres/port';
import type { BackedUpLogs, BackedUpPartition } from './manifest';
import { placesOf } from './places';
import { DOMAIN_EVENTS } from '../../domain/common/records';

/** Converts records to a file and back. */
export interface RecordCodec {
  encode(records: AsyncIterable<BrokerRecord>): Readable;
  decode(content: Readable, topic: string, partition: number): AsyncIterable<BrokerRecord[]>;
}

/** Logs outside the database, read through their ports. */
export interface OutsideLogs {
  codec: RecordCodec;
  broker?: {
    port: Broker;
    topics: readonly string[];
    /** All records of the partition up to `to`, including archived ones. */
    read(topic: string, partition: number, to: number): AsyncIterable<BrokerRecord[]>;
  };
  /** Event store that returns events in the form in which a restore stores them. */
  events?: EventStore;
}

/** Positions of the event store in the snapshot; call within the snapshot. */
export const eventPlaces = async (db: Queryable, { events }: OutsideLogs): Promise<string[]> =>
  events ? placesOf(db, { engine: events.id, source: DOMAIN_EVENTS, partition: 0 }) : [];

/**
 * Copies the logs up to their present end. Call after the database's snapshot: none of its checkpoints is ahead of the
 * logs, and records beyond them are applied after a restore. `places` is the result of {@link eventPlaces} in the
 * snapshot.
 */
export async function backUpLogs(
  target: Blobs,
  prefix: string,
  logs: OutsideLogs,
  places: readonly string[],
  report: (what: string) => void,
): Promise<BackedUpLogs> {
  return {
    topics: logs.broker ? await backUpTopics(target, prefix, logs.codec, logs.broker, report) : null,
    events: logs.events ? await backUpEvents(target, prefix, logs.events, places, report) : null,
  };
}

async function backUpTopics(
  target: Blobs,
  prefix: string,
  codec: RecordCodec,
  { port, topics, read }: NonNullable<OutsideLogs['broker']>,
  report: (what: string) => void,
): Promise<NonNullable<BackedUpLogs['topics']>> {
  const backed_up: NonNullable<BackedUpLogs['topics']> = [];
  for (const topic of topics) {
    const partitions: BackedUpPartition[] = [];
    for (const [partition, { next }] of await port.bounds(topic)) {
      let records = 0;
      let last: BrokerRecord | undefined;
      const each = async function* () {
        for await (const some of read(topic, partition, next)) {
          records += some.length;
          last = some.at(-1);
          report(`${topic}/${partition}`);
          yield* some;
        }
      };
      const key = `${prefix}logs/${topic}/${partition}.avro`;
      const { size_bytes, sha256 } = await target.put(key, codec.encode(each()), undefined, { sha256: null });
      partitions.push({
        partition,
        records,
        next,
        last: last ? { offset: last.offset, sha256: sha256Of(last.value) } : null,
        file: { key, size_bytes, sha256 },
      });
    }
    backed_up.push({ topic, partitions });
  }
  return backed_up;
}

async function backUpEvents(
  target: Blobs,
  prefix: string,
  events: EventStore,
  named: readonly string[],
  report: (what: string) => void,
): Promise<NonNullable<BackedUpLogs['events']>> {
  let count = 0;
  let last: StoredEvent | undefined;
  const places: Record<string, number> = {};
  const waiting = named.filter((position) => position !== '').sort((a, b) => events.compare(a, b));
  const lines = async function* () {
    for await (const batch of events.readAll(null)) {
      for (const event of batch.events) {
        while (waiting.length > 0 && events.compare(waiting[0]!, event.position) < 0) places[waiting.shift()!] = count;
        count += 1;
        last = event;
      }
      report('domain events');
      yield Buffer.from(batch.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    }
  };
  const key = `${prefix}logs/events.ndjson.gz`;
  const out = new PassThrough();
  const [{ size_bytes, sha256 }] = await Promise.all([
    target.put(key, out, undefined, { sha256: null }),
    pipeline(Readable.from(lines()), createGzip(), out),
  ]);
  for (const position of waiting) places[position] = count;
  return {
    count,
    last: last ? { stream: last.stream, revision: last.revision, id: last.id } : null,
    places,
    file: { key, size_bytes, sha256 },
  };
}

export const sha256Of = (value: Buffer): string => createHash('sha256').update(value).digest('hex');
