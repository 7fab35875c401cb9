import { createInterface } from 'node:readline';
import { PassThrough, pipeline, Readable } from 'node:stream';
import { pipeline as piped } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { Meter } from '../blobs/keys';
import type { Blobs } from '../blobs/port';
import type { Broker, BrokerRecord } from '../broker/port';
import type { EventStore, StoredEvent } from '../event-store/port';
import type { Database } from '../postgres/port';
import type { BackedUpFile, BackedUpLogs } from './manifest';

/** How records become a file and back. */
export interface RecordCodec {
  encode(records: AsyncIterable<BrokerRecord>): Readable;
  decode(content: Readable, topic: string, partition: number): AsyncIterable<BrokerRecord[]>;
}

/** Logs that do not lie in the database, read through their ports. */
export interface OutsideLogs {
  codec: RecordCodec;
  broker?: {
    port: Broker;
    topics: readonly string[];
    /** Everything of the partition up to `to`, archived records too. */
    read(topic: string, partition: number, to: number): AsyncIterable<BrokerRecord[]>;
  };
  events?: EventStore;
}

/**
 * Copies the logs up to where they are now. Called after the database's snapshot was taken: no checkpoint in it is ahead of them, and
 * what they hold beyond it is applied after a restore.
 */
export async function backUpLogs(
  target: Blobs,
  prefix: string,
  logs: OutsideLogs,
  report: (what: string) => void,
): Promise<BackedUpLogs> {
  const topics: BackedUpLogs['topics'] = [];
  for (const topic of logs.broker?.topics ?? []) {
    const partitions: BackedUpLogs['topics'][number]['partitions'] = [];
    for (const [partition, { next }] of await logs.broker!.port.bounds(topic)) {
      let records = 0;
      const each = async function* () {
        for await (const some of logs.broker!.read(topic, partition, next)) {
          records += some.length;
          report(`${topic}/${partition}`);
          yield* some;
        }
      };
      const key = `${prefix}logs/${topic}/${partition}.avro`;
      const { size_bytes, sha256 } = await target.put(key, logs.codec.encode(each()));
      partitions.push({ partition, records, file: { key, size_bytes, sha256 } });
    }
    topics.push({ topic, partitions });
  }
  return { topics, events: logs.events ? await backUpEvents(target, prefix, logs.events, report) : null };
}

async function backUpEvents(target: Blobs, prefix: string, events: EventStore, report: (what: string) => void) {
  let count = 0;
  const lines = async function* () {
    for await (const batch of events.readAll(null)) {
      count += batch.events.length;
      report('domain events');
      yield Buffer.from(batch.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    }
  };
  const key = `${prefix}logs/events.ndjson.gz`;
  const out = new PassThrough();
  const [{ size_bytes, sha256 }] = await Promise.all([
    target.put(key, out),
    piped(Readable.from(lines()), new Meter(), createGzip(), out),
  ]);
  return { count, file: { key, size_bytes, sha256 } };
}

export interface RestoreLogsOptions {
  from: Blobs;
  logs: BackedUpLogs;
  db: Database;
  broker: Broker;
  events: EventStore;
  codec: RecordCodec;
  report(what: string): void;
}

/**
 * Writes the logs through the configured ports, which may be other engines than before, and moves checkpoints and dead letters to the
 * places that the same records have there. @throws Error when a log is not empty, or has another number of partitions
 */
export async function restoreLogs(options: RestoreLogsOptions): Promise<void> {
  for (const { topic, partitions } of options.logs.topics) {
    await options.broker.ensureTopics([topic], partitions.length);
    const bounds = await options.broker.bounds(topic);
    if (bounds.size !== partitions.length) {
      throw new Error(
        `topic ${topic} has ${bounds.size} partitions instead of ${partitions.length}: set broker.partitions and make it anew`,
      );
    }
    if ([...bounds.values()].some(({ next }) => next > 0))
      throw new Error(`topic ${topic} is not empty: restore into a new broker`);
    for (const { partition, records, file } of partitions)
      await restorePartition(options, topic, partition, records, file);
  }
  if (options.logs.events) await restoreEvents(options, options.logs.events);
}

async function restorePartition(
  options: RestoreLogsOptions,
  topic: string,
  partition: number,
  count: number,
  file: BackedUpFile,
): Promise<void> {
  const { broker, db } = options;
  const places = new Places((a, b) => Number(a) - Number(b), await placesOf(db, topic, partition));
  let published = 0;
  for await (const records of options.codec.decode(await open(options.from, file), topic, partition)) {
    await broker.publish(
      topic,
      records.map(({ key, value, headers }) => ({ key, value, headers })),
    );
    for (const { offset } of records) {
      // A checkpoint is the next offset to read, a dead letter the record's own: both become the place of the first record not below.
      places.pass(String(offset), String(published));
      published += 1;
    }
    options.report(`${topic}/${partition}`);
  }
  const end = (await broker.bounds(topic)).get(partition)!;
  if (published !== count || end.next - end.earliest !== count) {
    throw new Error(
      `${topic}/${partition}: ${end.next - end.earliest} records came back instead of ${count}; restore into a new broker`,
    );
  }
  await move(db, topic, partition, broker.id, places.settled(String(published)));
}

async function restoreEvents(
  options: RestoreLogsOptions,
  { count, file }: NonNullable<BackedUpLogs['events']>,
): Promise<void> {
  const { events, db } = options;
  if ((await events.head()) !== null) throw new Error('the event store is not empty: restore into a new one');
  // The position of the last event seen: the newest one that is not beyond it.
  const marks = (await placesOf(db, 'domain-events', 0))
    .filter((place) => place !== '')
    .sort((a, b) => events.compare(a, b));
  const moved = new Map<string, string>([['', '']]);
  let last = '';
  let restored = 0;
  const settle = (until: StoredEvent | undefined) => {
    while (marks.length > 0 && (!until || events.compare(marks[0]!, until.position) < 0))
      moved.set(marks.shift()!, last);
  };
  const gunzip = createGunzip();
  pipeline(await open(options.from, file), gunzip, () => undefined); // a stream that failed ends the lines early, which the count shows
  for await (const line of createInterface({ input: gunzip, crlfDelay: Infinity })) {
    const event = JSON.parse(line) as StoredEvent;
    settle(event);
    const { id, type, data, stream, revision, metadata } = event;
    const expected = revision === 0 ? 'none' : revision - 1;
    last = (await events.append([{ stream, expected, events: [{ id, type, data }] }], metadata)).position;
    restored += 1;
    if (restored % 100 === 0) options.report('domain events');
  }
  if (restored !== count) throw new Error(`${file.key} is damaged: ${restored} of ${count} events`);
  settle(undefined);
  await move(db, 'domain-events', 0, events.id, moved);
}

/** Old places, in order, and what became of them. */
class Places {
  private readonly waiting: string[];
  private readonly found = new Map<string, string>();

  constructor(
    private readonly compare: (a: string, b: string) => number,
    places: string[],
  ) {
    this.waiting = places.sort(compare);
  }

  pass(old: string, now: string): void {
    while (this.waiting.length > 0 && this.compare(this.waiting[0]!, old) <= 0)
      this.found.set(this.waiting.shift()!, now);
  }

  settled(end: string): Map<string, string> {
    for (const place of this.waiting.splice(0)) this.found.set(place, end);
    return this.found;
  }
}

async function placesOf(db: Database, source: string, partition: number): Promise<string[]> {
  const rows = await db.query<{ position: string }>(
    `select position from checkpoints where source = $1 and partition = $2
     union select position from dead_letters where source = $1 and partition = $2`,
    [source, partition],
  );
  return rows.map(({ position }) => position);
}

async function move(
  db: Database,
  source: string,
  partition: number,
  engine: string,
  places: ReadonlyMap<string, string>,
): Promise<void> {
  const values = [source, partition, [...places.keys()], [...places.values()]];
  await db.transaction(async (tx) => {
    await tx.query(
      `update checkpoints c set position = p.now, engine = $5 from unnest($3::text[], $4::text[]) p (old, now)
       where c.source = $1 and c.partition = $2 and c.position = p.old`,
      [...values, engine],
    );
    // By way of places that no record has: two letters must not meet on the way.
    await tx.query(
      `update dead_letters d set position = '~' || p.now from unnest($3::text[], $4::text[]) p (old, now)
       where d.source = $1 and d.partition = $2 and d.position = p.old`,
      values,
    );
    await tx.query(
      `update dead_letters set position = substr(position, 2) where source = $1 and partition = $2 and position like '~%'`,
      [source, partition],
    );
  });
}

async function open(from: Blobs, { key }: BackedUpFile): Promise<Readable> {
  const content = await from.get(key);
  if (!content) throw new Error(`${key} is missing`);
  return content;
}
