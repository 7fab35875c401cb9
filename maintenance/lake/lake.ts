import { Readable } from 'node:stream';
import { TOPICS } from '../../domain/common/records';
import type { PlainFiles } from '../../engines/blobs/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { ReadFormat } from '../archive/files/decoder';
import { openEncoder } from '../archive/files/encoder';
import { type Persons, recordColumns, recordRow, TOPIC_OF, type TopicSource } from '../archive/files/record-columns';
import type { ExportRow } from '../archive/files/columns';
import { replayTopic, type ReplayDeps } from '../archive/replay';
import { archiveKeyPart } from '../archive/segments';
import { expiryOf, sweepExpired } from '../retention/expiry';
import { RawJson } from '../../lib/json/raw-json';
import { Sql } from '../../kernel/sql';
import { HistoryTruncated, readStored } from '../../projections/runtime/rebuild/source';
import { dropWrittenErasures, ownRows } from './own-rows';
import { removeUnsorted, sortedByAccount } from './sorted-rows';

export interface LakeDeps extends ReplayDeps {
  db: Database;
  store: PlainFiles;
  persons: Persons;
  /** Default Parquet. */
  format?: ReadFormat;
  /** Milliseconds since 1970; default the current time. */
  now?: number;
}

const HOUR_MS = 3_600_000;
/** Time after the end of an hour at which the log has all its records. */
const SETTLED_MS = 60_000;
const DAY = '2026-01-01'.length;
const GROUP_ROWS = 20_000;
/** Samples name nobody, and no retention concerns them. */
const KEPT = TOPICS.stream_samples;

interface Bounds {
  earliest: number;
  next: number;
}

interface LakeFile {
  [column: string]: unknown;
  topic: string;
  partition: number;
  day: string;
  from_offset: number;
  to_offset: number;
  version: number;
}

const FILE_KEY = 'engine = $1 and topic = $2 and partition = $3 and day = $4::date';

/**
 * Adds closed hours of the log to the files of their UTC days, and writes all changed files: complete after a crash,
 * since a file counts as written only after its content is stored. A failure delays no other partition and file, so
 * that erasures reach all others. One process at a time.
 * @returns the number of files written or deleted
 * @throws the first failure, at the end
 */
export async function writeLake(deps: LakeDeps, signal: AbortSignal): Promise<number> {
  const { db, broker, persons } = deps;
  await removeUnsorted();
  await db.query('update lake_files set version = version + 1, persons = $1 where persons <> $1', [persons]);
  const failures: unknown[] = [];
  const fail = (error: unknown) => void failures.push(error);
  for (const topic of Object.values(TOPIC_OF)) {
    const partitions = await broker.bounds(topic).catch((error: unknown) => (fail(error), new Map<number, Bounds>()));
    for (const [partition, bounds] of partitions) {
      if (!signal.aborted) await addHours(deps, topic, partition, bounds).catch(fail);
    }
  }
  const changed = await db.query<LakeFile>(
    `select topic, partition, day::text as day, from_offset, to_offset, version from lake_files
     where engine = $1 and version <> written_version and rewrite_at <= now() order by day, topic, partition`,
    [broker.id],
  );
  let written = 0;
  for (const file of changed) {
    if (signal.aborted) break;
    await writeFile(deps, file).then(() => (written += 1), fail);
  }
  await dropWrittenErasures(db).catch(fail);
  if (failures.length > 0) throw failures[0];
  return written;
}

/** Extends the files of a partition by the records of closed hours. */
async function addHours(deps: LakeDeps, topic: string, partition: number, { earliest, next }: Bounds): Promise<void> {
  const { db, broker, persons, now = Date.now() } = deps;
  const closed_ms = Math.floor((now - SETTLED_MS) / HOUR_MS) * HOUR_MS;
  const [last] = await db.query<{ to_offset: number | null; day: string | null }>(
    `select max(to_offset) as to_offset, max(day)::text as day from lake_files
     where engine = $1 and topic = $2 and partition = $3`,
    [broker.id, topic, partition],
  );
  let day = last?.day ?? '';
  const from = last?.to_offset ?? 0;
  const pages =
    from === 0 ? fromBeginning(deps, topic, partition, earliest, next) : readStored(deps, topic, partition, from, next);
  for await (const page of pages) {
    const spans = new Map<string, { from: number; to: number }>();
    for (const { offset, appended_at } of page) {
      if (Date.parse(appended_at) >= closed_ms) break;
      const own_day = appended_at.slice(0, DAY);
      // A clock that was set back opens no earlier file.
      if (own_day > day) day = own_day;
      spans.set(day, { from: spans.get(day)?.from ?? offset, to: offset + 1 });
    }
    const days = [...spans];
    await db.query(
      `insert into lake_files as f (engine, topic, partition, day, from_offset, to_offset, persons)
       select $1, $2, $3, day, first, next, $4 from unnest($5::date[], $6::bigint[], $7::bigint[]) s (day, first, next)
       on conflict (engine, topic, partition, day) do update
         set to_offset = excluded.to_offset, version = f.version + 1 where f.to_offset < excluded.to_offset`,
      [
        ...[broker.id, topic, partition, persons, days.map(([of]) => of)],
        ...[days.map(([, span]) => span.from), days.map(([, span]) => span.to)],
      ],
    );
    if (days.at(-1)?.[1].to !== page.at(-1)!.offset + 1) return;
  }
}

/** All records of a partition, or those that neither retention nor the archiver has deleted. */
async function* fromBeginning(deps: LakeDeps, topic: string, partition: number, earliest: number, next: number) {
  try {
    yield* readStored(deps, topic, partition, 0, next);
  } catch (error) {
    if (!(error instanceof HistoryTruncated)) throw error;
    yield* readStored(deps, topic, partition, earliest, next);
  }
}

const SOURCES = new Map<string, TopicSource>(
  Object.entries(TOPIC_OF).map(([source, topic]) => [topic, source as TopicSource]),
);

/** Key of the file of a day: `<log>/<topic>/<day>/<topic>-<day>-<partition>.parquet`. */
const keyOf = (engine: string, { topic, day, partition }: LakeFile, format: ReadFormat): string =>
  `${archiveKeyPart(engine)}/${topic}/${day}/${topic}-${day}-${partition}.${format}`;

async function writeFile(deps: LakeDeps, file: LakeFile): Promise<void> {
  try {
    await write(deps, file, null);
  } catch (error) {
    if (!(error instanceof HistoryTruncated)) throw error;
    const bounds = (await deps.broker.bounds(file.topic)).get(file.partition);
    if (bounds === undefined) throw error;
    await write(deps, file, bounds.earliest);
  }
}

/** Writes a file from the records of the log; those before `dropped` are rows of the file itself. */
async function write(deps: LakeDeps, file: LakeFile, dropped: number | null): Promise<void> {
  const { db, broker, store, persons, format = 'parquet' } = deps;
  const { topic, partition, day, version } = file;
  const source = SOURCES.get(topic)!;
  const accounts = new Set<string>();
  const columns = recordColumns(source, persons);
  const encoder = await openEncoder(format, columns, null);
  async function* content(): AsyncGenerator<Buffer> {
    let rows: ExportRow[] = [];
    yield encoder.head;
    for await (const row of sortedByAccount(keptRows(deps, source, file, dropped))) {
      accounts.add(String(row['account_id']));
      rows.push(row);
      if (rows.length < GROUP_ROWS) continue;
      yield encoder.rows(rows);
      rows = [];
    }
    if (rows.length > 0) yield encoder.rows(rows);
    yield encoder.tail();
  }
  const key = keyOf(broker.id, file, format);
  await store.put(key, Readable.from(content(), { objectMode: false }));
  if (accounts.size === 0) await store.delete(key);
  await db.query(`update lake_files set written_version = $5, accounts = $6 where ${FILE_KEY} and version = $5`, [
    broker.id,
    topic,
    partition,
    day,
    version,
    [...accounts],
  ]);
}

/** Rows of a file, without those of dissolved accounts and those past their retention. */
async function* keptRows(
  deps: LakeDeps,
  source: TopicSource,
  file: LakeFile,
  dropped: number | null,
): AsyncGenerator<ExportRow[]> {
  const is_kept = new Map<string, boolean>();
  const columns = recordColumns(source, deps.persons);
  for await (const all of rowsOf(deps, source, file, dropped)) {
    const unknown = new Set(
      all.flatMap(({ account_id }) => (is_kept.has(String(account_id)) ? [] : [String(account_id)])),
    );
    if (unknown.size > 0)
      for (const [id, kept] of await keptAccounts(deps.db, [...unknown], file)) is_kept.set(id, kept);
    const rows = all.filter(({ account_id }) => is_kept.get(String(account_id)) === true);
    if (rows.length > 0) yield rows.map((row) => shown(row, columns));
  }
}

async function* rowsOf(
  deps: LakeDeps,
  source: TopicSource,
  file: LakeFile,
  dropped: number | null,
): AsyncGenerator<ExportRow[]> {
  const { topic, partition, from_offset, to_offset } = file;
  const { db, store, broker, format = 'parquet' } = deps;
  if (dropped !== null) {
    const own = { db, store, engine: broker.id, format };
    yield* ownRows(own, keyOf(broker.id, file, format), file, dropped);
  }
  const from = Math.max(from_offset, dropped ?? 0);
  if (from >= to_offset) return;
  for await (const records of replayTopic(deps, {
    topic,
    partition,
    from: { number: from },
    to: { number: to_offset },
  }))
    yield records.filter((record) => 'raw' in record).map((record) => recordRow(source, record));
}

/** The columns of a row alone: no other part of a record reaches the disk. */
const shown = (row: ExportRow, columns: readonly { name: string }[]): ExportRow =>
  Object.fromEntries(
    columns.map(({ name }) => {
      const value = row[name];
      return [name, value instanceof RawJson ? value.text : (value ?? null)];
    }),
  );

async function keptAccounts(
  db: Queryable,
  ids: readonly string[],
  { topic, day }: LakeFile,
): Promise<Map<string, boolean>> {
  const dissolved = await db.query<{ account_id: string }>(
    'select account_id from dissolved_accounts where account_id = any($1::uuid[])',
    [ids],
  );
  const gone = new Set(dissolved.map(({ account_id }) => account_id));
  const expiry = topic === KEPT ? new Map<string, string>() : await expiryOf(db, ids);
  return new Map(
    ids.map((id) => {
      const until = expiry.get(id);
      return [id, !gone.has(id) && (until === undefined || day >= new Date(until).toISOString().slice(0, DAY))];
    }),
  );
}

const EXPIRED = new Sql(`exists (
  select from lake_files f where f.accounts @> array[a.id] and f.topic <> '${KEPT}'
    and f.day < (limited.until at time zone 'UTC')::date)`);

/**
 * Marks the files that have rows of dissolved accounts, or of days that have wholly expired, to be written again.
 * @returns the number of marked files
 */
export async function expireLake(db: Database, signal?: AbortSignal): Promise<number> {
  const dissolved = await db.query(
    `update lake_files f set version = version + 1
     where version = written_version and exists (select from dissolved_accounts d where f.accounts @> array[d.account_id])
     returning 1 as one`,
  );
  const expired = await sweepExpired(
    db,
    EXPIRED,
    async (account_id, until) => {
      const files = await db.query(
        `update lake_files set version = version + 1 where version = written_version and accounts @> array[$1::uuid]
           and topic <> $3 and day < ($2::timestamptz at time zone 'UTC')::date returning 1 as one`,
        [account_id, until, KEPT],
      );
      return files.length;
    },
    signal,
  );
  return dissolved.length + expired;
}
