import type { Broker, BrokerRecord } from '../engines/broker/port';
import type { EventStore } from '../engines/event-store/port';
import type { Database, Queryable } from '../engines/postgres/port';
import type { RecordLog } from '../engines/records/port';
import { readStored, type ReadArchived } from '../projections/runtime/rebuild-source';

/** Offsets of one entry of the index: few enough to look through, many enough that who is busy fills no table. */
export const BLOCK = 256;
/** Whose a record is that cannot be decoded: another build may read it, so every erasure looks at it. */
const ANYBODY = Buffer.alloc(0);
/** What the index calls the event store. */
const EVENTS = 'events';

export interface TopicIndexDeps {
  db: Database;
  broker: Broker;
  records: Pick<RecordLog, 'subjectsOf'>;
  readArchived?: ReadArchived;
}

export interface EventIndexDeps {
  db: Database;
  /** As they are stored: nothing is opened. */
  stored_events: Pick<EventStore, 'id' | 'readAll'>;
}

/** A place in a source and what it is there for. */
interface Source {
  id: number;
  /** Up to here it was read; null: nothing yet. */
  position: string | null;
}

/** Offsets of a partition, `to` exclusive. */
export interface Place {
  partition: number;
  from: number;
  to: number;
}

/** Another process moved the source on meanwhile. */
class MovedOn extends Error {}

/**
 * Reads what came since the last time, whoever it was that read it, and notes whose personal parts lie where. Each
 * record is read once for all subjects. It bears being cut off, and being done by several processes at once.
 * @returns how many records were read
 * @throws HistoryGone
 */
export async function indexTopic(deps: TopicIndexDeps, topic: string): Promise<number> {
  const { db, broker, records } = deps;
  let read = 0;
  for (const [partition, { next }] of await broker.bounds(topic)) {
    read += await index(db, { source: topic, engine: broker.id, partition }, BLOCKS, async function* (position) {
      for await (const stored of readStored(deps, topic, partition, Number(position ?? 0), next)) {
        const places = await placesIn(records, stored);
        yield { places, to: String(stored.at(-1)!.offset + 1), read: stored.length };
      }
    });
  }
  return read;
}

/** The same of the event store, by streams. Returns how many events were read. */
export function indexEvents({ db, stored_events }: EventIndexDeps): Promise<number> {
  const source = { source: EVENTS, engine: stored_events.id, partition: 0 };
  return index(db, source, STREAMS, async function* (read_to) {
    for await (const { events, position } of stored_events.readAll(read_to)) {
      const places = events.flatMap(({ stream, metadata }) =>
        (metadata['subjects']?.split(',') ?? []).map((hash) => ({ subject: bytes(hash), place: stream })),
      );
      yield { places, to: position, read: events.length };
    }
  });
}

/** The event store, and then these topics, each to its end. Returns how many were read. */
export async function indexAll(deps: TopicIndexDeps & EventIndexDeps, topics: readonly string[]): Promise<number> {
  let read = await indexEvents(deps);
  for (const topic of topics) read += await indexTopic(deps, topic);
  return read;
}

/** Places of subjects in one page of a source, which ends at `to`. */
interface PlacesPage {
  places: readonly { subject: Buffer; place: number | string }[];
  to: string;
  read: number;
}

const BLOCKS = `
  insert into subject_places (subject, source_id, block)
  select distinct subject, $2::integer, block from unnest($1::bytea[], $3::bigint[]) p (subject, block)
  order by 1, 3 on conflict do nothing`;
const STREAMS = `
  insert into subject_streams (subject, source_id, stream)
  select distinct subject, $2::integer, stream from unnest($1::bytea[], $3::text[]) p (subject, stream)
  order by 1, 3 on conflict do nothing`;

/** Notes page after page from where the source was read to; where another process moved it on, from there. */
async function index(
  db: Database,
  of: { source: string; engine: string; partition: number },
  insert: string,
  pagesFrom: (position: string | null) => AsyncIterable<PlacesPage>,
): Promise<number> {
  let all = 0;
  for (;;) {
    try {
      const source = await sourceOf(db, of);
      for await (const { places, to, read } of pagesFrom(source.position)) {
        await db.transaction(async (tx) => {
          await moveOn(tx, source, to);
          await tx.query(insert, [places.map(({ subject }) => subject), source.id, places.map(({ place }) => place)]);
        });
        source.position = to;
        all += read;
      }
      return all;
    } catch (error) {
      if (!(error instanceof MovedOn)) throw error;
    }
  }
}

/** Offsets of a topic among which records of the subject lie, as far as it was indexed: by partition, in order. */
export async function placesOf(
  { db, broker }: Pick<TopicIndexDeps, 'db' | 'broker'>,
  topic: string,
  subject: string,
): Promise<Place[]> {
  const rows = await db.query<{ partition: number; block: number }>(
    `select s.partition, p.block from subject_places p join subject_sources s on s.id = p.source_id
     where p.subject in ($1, $4) and s.source = $2 and s.engine = $3
     group by s.partition, p.block order by s.partition, p.block`,
    [bytes(subject), topic, broker.id, ANYBODY],
  );
  return rows.map(({ partition, block }) => ({ partition, from: block * BLOCK, to: (block + 1) * BLOCK }));
}

/** Streams that hold personal parts of the subject, as far as it was indexed. */
export async function streamsOf(
  { db, stored_events }: { db: Queryable; stored_events: Pick<EventStore, 'id'> },
  subject: string,
): Promise<string[]> {
  const rows = await db.query<{ stream: string }>(
    `select p.stream from subject_streams p join subject_sources s on s.id = p.source_id
     where p.subject = $1 and s.source = $2 and s.engine = $3 order by p.stream`,
    [bytes(subject), EVENTS, stored_events.id],
  );
  return rows.map(({ stream }) => stream);
}

const bytes = (hash: string): Buffer => Buffer.from(hash, 'base64url');

async function placesIn(records: Pick<RecordLog, 'subjectsOf'>, stored: readonly BrokerRecord[]) {
  const subjects = await records.subjectsOf(stored);
  return stored.flatMap(({ offset }, n) => {
    const place = Math.floor(offset / BLOCK);
    const persons = subjects[n]?.map(bytes) ?? [ANYBODY];
    return persons.map((subject) => ({ subject, place }));
  });
}

async function sourceOf(
  db: Queryable,
  { source, engine, partition }: { source: string; engine: string; partition: number },
): Promise<Source> {
  await db.query('insert into subject_sources (source, engine, partition) values ($1, $2, $3) on conflict do nothing', [
    source,
    engine,
    partition,
  ]);
  const [row] = await db.query<{ id: number; position: string | null }>(
    'select id, position from subject_sources where source = $1 and engine = $2 and partition = $3',
    [source, engine, partition],
  );
  return row!;
}

async function moveOn(tx: Queryable, { id, position }: Source, to: string): Promise<void> {
  const moved = await tx.query(
    'update subject_sources set position = $3 where id = $1 and position is not distinct from $2 returning 1 as one',
    [id, position, to],
  );
  if (moved.length === 0) throw new MovedOn();
}
