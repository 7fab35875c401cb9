import type { Broker, BrokerRecord } from '../../engines/broker/port';
import type { EventStore } from '../../engines/event-store/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { RecordLog } from '../../engines/records/port';
import { readStored, type ReadArchived } from '../../projections/runtime/rebuild/source';

/** Offsets per index entry: few enough to scan, and many enough that an active person does not fill the table. */
export const BLOCK = 256;
/** Subject of an undecodable record: another release may decode it, so every erasure reads it. */
const ANYBODY = Buffer.alloc(0);
/** Source name of the event store in the index. */
const EVENTS = 'events';

export interface TopicIndexDeps {
  db: Database;
  broker: Broker;
  records: Pick<RecordLog, 'subjectsOf'>;
  readArchived?: ReadArchived;
}

export interface EventIndexDeps {
  db: Database;
  /** Events in their stored form, without decryption. */
  stored_events: Pick<EventStore, 'id' | 'readAll'>;
}

/** Progress of the index in a source. */
interface Source {
  id: number;
  /** Position up to which it was read; null before the first read. */
  position: string | null;
}

/** Offsets of a partition, `to` exclusive. */
export interface Place {
  partition: number;
  from: number;
  to: number;
}

/** Another process has advanced the source meanwhile. */
class MovedOn extends Error {}

/**
 * Indexes the records since the last run of any process: the subjects whose personal parts they contain. Reads each
 * record once for all subjects. Repeatable after an interruption and safe in several processes at once.
 * @returns the number of records read
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

/** Indexes the event store by streams. Returns the number of events read. */
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

/** Indexes the event store and then these topics to their ends. Returns the number of events and records read. */
export async function indexAll(deps: TopicIndexDeps & EventIndexDeps, topics: readonly string[]): Promise<number> {
  let read = await indexEvents(deps);
  for (const topic of topics) read += await indexTopic(deps, topic);
  return read;
}

/** Places of subjects in a page of a source that ends at `to`. */
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

/**
 * Stores page after page from the source's position; resumes from the new position when another process has advanced
 * it.
 */
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

/** Ranges of offsets with records of the subject, as far as indexed: by partition, in order. */
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

/** Streams with personal parts of the subject, as far as indexed. */
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

/** Whether a record or an event with a personal part of the subject was ever indexed. */
export async function indexesSubject(db: Queryable, subject: string): Promise<boolean> {
  const rows = await db.query(
    `(select 1 as one from subject_places where subject = $1 limit 1)
     union all (select 1 from subject_streams where subject = $1 limit 1)`,
    [bytes(subject)],
  );
  return rows.length > 0;
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
