import { ERASED_RAW } from '../../domain/common/records';
import { pause } from '../../lib/async/signal';
import type { Broker } from '../../engines/broker/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { LoggedRecord, RecordLog } from '../../engines/records/port';
import type { SubjectKeys } from '../subject-keys/port';
import type { RecordEraser } from '../../kernel/eraser';
import { keyOfChannel, shardOf } from '../../lib/hash/shards';
import { refuseDecoded } from '../../projections/runtime/checkpoint/checkpoints';
import { RebuildRunning, keepRebuildsAway } from '../../projections/runtime/rebuild/lock';
import { readStored, type ReadArchived } from '../../projections/runtime/rebuild/source';
import { markLake } from './lake-places';
import { unfencedNodesMayRun, untilApplied } from './erasure-roll';
import { BLOCK, indexTopic, placesOf, type Place } from '../../maintenance/archive/subject-index';

export interface ErasureDeps {
  db: Database;
  broker: Broker;
  records: Pick<RecordLog, 'decode' | 'subjectsOf'>;
  subject_keys: Pick<SubjectKeys, 'hashesOf'>;
  readArchived?: ReadArchived;
  erasers: readonly RecordEraser[];
  /** Destroys the subject's keys durably; afterwards their records read as erased. Returns the number of keys. */
  destroyKeys(subject: string): Promise<number>;
  /** Longest time for which another node may still use a destroyed key, plus a margin. Default 6 s. */
  keys_cached_ms?: number;
  /** Whether another process may have keys or decoded batches in memory. Default: it may. */
  othersRun?(): Promise<boolean>;
  /** Longest wait for running rebuilds, and for checkpoints during a rolling upgrade. Default 10 minutes. */
  patience_ms?: number;
  /** Ends a pass over the records between two batches; what is left needs another pass. */
  signal?: AbortSignal;
  /** `what` names the step, while `total` is 0 until its size is known. */
  onProgress?: (progress: { done: number; total: number; what: string }) => void;
}

export interface Erased {
  keys: number;
  /** Records of the log that are about the person. */
  records: number;
  rows: number;
  messages: number;
}

/** Tables that the erasure of records cleans itself, for all read models: messages, and errors of failures. */
export const CLEANED_WITH_RECORDS = ['outbox', 'dead_letters'] as const;

type Places = Map<number, number>;
const IDS_PER_TRANSACTION = 1000;

/**
 * Erases a person: destroys their keys, which makes every copy of their records unreadable, then updates live rows and
 * stored messages to the result of a rebuild. Once no node has a key in memory, batches decoded before are refused at
 * their checkpoints, and their earlier writes are swept again. Idempotent. Design §5.
 * @throws RebuildRunning when a rebuild does not end, Error when read models are too far behind in a rolling upgrade;
 * then it must be repeated
 */
export async function eraseSubject(deps: ErasureDeps, subject: string): Promise<Erased> {
  const topics = [...new Set(deps.erasers.map(({ topic }) => topic))];
  const before = new Map<string, Places>();
  for (const topic of topics) before.set(topic, await appliedUpTo(deps, topic));
  const keys = await deps.destroyKeys(subject);
  const hash = (await deps.subject_keys.hashesOf([subject])).get(subject)!;
  return { keys, ...(await eraseWithoutKeys(deps, hash, before)) };
}

/**
 * The rest of {@link eraseSubject}, for a subject whose keys are destroyed. `before`: offsets by topic and partition
 * that every projection had applied before the keys were destroyed; default: none.
 */
export async function eraseWithoutKeys(
  deps: Omit<ErasureDeps, 'subject_keys' | 'destroyKeys'>,
  hash: string,
  before: ReadonlyMap<string, Places> = new Map(),
): Promise<Omit<Erased, 'keys'>> {
  const topics = [...new Set(deps.erasers.map(({ topic }) => topic))];
  const erased = { rows: 0, messages: 0, ids: new Set<string>() };
  for (const topic of topics) await sweep(deps, hash, erased, topic, () => 0);
  const others = deps.othersRun === undefined || (await deps.othersRun());
  if (others) {
    deps.onProgress?.({ done: 0, total: 0, what: 'waiting until no process holds the keys in memory' });
    await pause(deps.keys_cached_ms ?? 6000);
  }
  const unfenced = others && (await unfencedNodesMayRun(deps.db));
  for (const topic of topics) {
    if (unfenced) {
      deps.onProgress?.({ done: 0, total: 0, what: `waiting for nodes of the previous release to apply ${topic}` });
      await untilApplied(deps.broker, topic, () => appliedUpTo(deps, topic), deps.patience_ms ?? 600_000);
    }
    await refuseDecoded(deps.db, topic, projectionsOf(deps, topic));
    await sweep(deps, hash, erased, topic, (partition) => before.get(topic)?.get(partition) ?? 0);
  }
  const { ids, ...counts } = erased;
  return { ...counts, records: ids.size };
}

/** Dependencies of one pass over the records of a subject. */
export type SweepDeps = Omit<ErasureDeps, 'subject_keys' | 'destroyKeys'>;

/**
 * Updates live rows and stored messages of a subject without keys to the result of a rebuild, in one pass. Batches
 * decoded by other processes before may follow. @returns the number of changed rows
 */
export async function eraseRowsOf(deps: SweepDeps, hash: string): Promise<number> {
  const erased = { rows: 0, messages: 0, ids: new Set<string>() };
  for (const topic of new Set(deps.erasers.map((eraser) => eraser.topic))) {
    await sweep(deps, hash, erased, topic, () => 0);
  }
  return erased.rows;
}

async function sweep(
  deps: SweepDeps,
  hash: string,
  erased: { rows: number; messages: number; ids: Set<string> },
  topic: string,
  from: (partition: number) => number,
): Promise<void> {
  for await (const some of recordsOf(deps, hash, topic, from)) {
    if (deps.signal?.aborted) return;
    // A readable record was sealed under a later key: the person has returned, and a rebuild includes it too.
    const found = some.filter(({ raw }) => raw === ERASED_RAW);
    for (const { id } of found) erased.ids.add(id);
    for (const eraser of deps.erasers.filter((one) => one.topic === topic)) {
      const { rows, messages } = await apply(deps, eraser, found);
      erased.rows += rows;
      erased.messages += messages;
    }
  }
}

/** Records about the subject in bounded batches: updates the index, which locates them. */
async function* recordsOf(
  deps: SweepDeps,
  hash: string,
  topic: string,
  from: (partition: number) => number,
): AsyncGenerator<LoggedRecord[]> {
  deps.onProgress?.({ done: 0, total: 0, what: `records of ${topic}` });
  await indexTopic(deps, topic);
  const ends = await deps.broker.bounds(topic);
  const places = await placesOf(deps, topic, hash);
  await markLake(deps.db, deps.broker.id, topic, places);
  const spans = joined(places, ends).flatMap(({ partition, from: first, to }) => {
    const span = { partition, first: Math.max(first, from(partition)), to: Math.min(to, ends.get(partition)!.next) };
    return span.first < span.to ? [span] : [];
  });
  const total = spans.reduce((sum, { first, to }) => sum + to - first, 0);
  let done = 0;
  for (const { partition, first, to } of spans) {
    for await (const stored of readStored(deps, topic, partition, first, to)) {
      const subjects = await deps.records.subjectsOf(stored);
      const { records } = await deps.records.decode(stored.filter((_, n) => subjects[n]?.includes(hash)));
      for (let at = 0; at < records.length; at += IDS_PER_TRANSACTION)
        yield records.slice(at, at + IDS_PER_TRANSACTION);
      done += stored.length;
      deps.onProgress?.({ done, total, what: `records of ${topic}` });
    }
  }
}

/** Longest gap that is read through instead of starting another read: an archived segment is read entirely. */
const PASSED_OVER = { live: 4 * BLOCK, archived: 100_000 };

/** Joins places with small gaps. */
function joined(places: readonly Place[], ends: Awaited<ReturnType<Broker['bounds']>>): Place[] {
  const spans: Place[] = [];
  for (const place of places) {
    const last = spans.at(-1);
    const near = place.from < (ends.get(place.partition)?.earliest ?? 0) ? PASSED_OVER.archived : PASSED_OVER.live;
    if (last?.partition === place.partition && place.from - last.to < near) last.to = place.to;
    else if (ends.has(place.partition)) spans.push({ ...place });
  }
  return spans;
}

async function apply(deps: SweepDeps, eraser: RecordEraser, found: readonly LoggedRecord[]) {
  const ids = found.map(({ id }) => id);
  const deadline = Date.now() + (deps.patience_ms ?? 600_000);
  for (;;) {
    try {
      return await deps.db.transaction(async (tx) => {
        await keepRebuildsAway(tx, eraser.projection);
        const rows = await eraser.erase(tx, found);
        const messages = await eraser.messages(tx, ids);
        const changed = await replaceMessages(tx, messages, shardsOf(found));
        // The error of a record may quote it.
        await tx.query(
          `update dead_letters d set error = '[erased]' from unnest($2::integer[], $3::text[]) r (partition, position)
           where d.source = $1 and d.partition = r.partition and d.position = r.position`,
          [eraser.topic, found.map(({ partition }) => partition), found.map(({ offset }) => String(offset))],
        );
        return { rows, messages: changed };
      });
    } catch (error) {
      if (!(error instanceof RebuildRunning) || Date.now() > deadline) throw error;
      deps.onProgress?.({ done: 0, total: 0, what: `waiting for a rebuild of ${eraser.projection}` });
      await pause(500);
    }
  }
}

/**
 * Replaces stored messages by the ids of their records; `shards` limits the search. A message keeps its position in its
 * channel, because a gap would look like loss to every client. @returns the number of changed messages
 */
async function replaceMessages(
  tx: Queryable,
  messages: ReadonlyMap<string, string>,
  shards: readonly number[] | null,
): Promise<number> {
  if (messages.size === 0) return 0;
  const lists = [[...messages.keys()], [...messages.values()]];
  const changed = await tx.query(
    `update outbox o set data = m.data from unnest($1::text[], $2::text[]) m (record_id, data)
     where left(o.data, 7) = '{"id":"' and substr(o.data, 8, 36) = m.record_id and o.data <> m.data
       ${shards === null ? '' : 'and o.shard = any($3::integer[])'}
       returning 1 as one`,
    shards === null ? lists : [...lists, shards],
  );
  return changed.length;
}

/** Shard of messages whose writer knew no shards (migrations/0120-outbox-shards.ts). */
const UNSHARDED = 64;

/** Shards of the channels of these records' accounts; null when a channel's shard does not follow from its account. */
function shardsOf(found: readonly LoggedRecord[]): number[] | null {
  const accounts = new Set(found.map(({ account_id }) => account_id));
  const shards = new Set([UNSHARDED]);
  for (const account_id of accounts) {
    if (keyOfChannel(`events:${account_id}`) !== account_id) return null;
    shards.add(shardOf('', account_id));
  }
  return [...shards];
}

const projectionsOf = ({ erasers }: SweepDeps, topic: string): string[] =>
  erasers.filter((one) => one.topic === topic).map(({ projection }) => projection);

/** Slowest checkpoint of the topic's projections, per partition. */
async function appliedUpTo(deps: SweepDeps, topic: string): Promise<Places> {
  const places: Places = new Map();
  for (const [partition] of await deps.broker.bounds(topic)) {
    const rows = await deps.db.query<{ position: string }>(
      'select position from checkpoints where source = $1 and partition = $2 and engine = $3 and projection = any($4)',
      [topic, partition, deps.broker.id, projectionsOf(deps, topic)],
    );
    places.set(partition, rows.length === 0 ? 0 : Math.min(...rows.map(({ position }) => Number(position))));
  }
  return places;
}
