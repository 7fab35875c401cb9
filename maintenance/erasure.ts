import { ERASED_RAW } from '../domain/records';
import { pause } from '../kernel/signal';
import type { Broker } from '../engines/broker/port';
import type { Database } from '../engines/postgres/port';
import type { LoggedRecord, RecordLog } from '../engines/records/port';
import type { SubjectKeys } from '../engines/subject-keys/port';
import type { RecordEraser } from '../kernel/eraser';
import { RebuildRunning, keepRebuildsAway } from '../projections/runtime/rebuild-lock';
import { readStored, type ReadArchived } from '../projections/runtime/rebuild-source';
import { BLOCK, indexTopic, placesOf, type Place } from './subject-index';

export interface ErasureDeps {
  db: Database;
  broker: Broker;
  records: Pick<RecordLog, 'decode' | 'subjectsOf'>;
  subject_keys: Pick<SubjectKeys, 'hashesOf'>;
  readArchived?: ReadArchived;
  erasers: readonly RecordEraser[];
  /** Destroys the subject's keys, durably; after it their records read as erased. Returns how many keys. */
  destroyKeys(subject: string): Promise<number>;
  /** Longest time for which another node may still use a destroyed key, and some. Default 6 s. */
  keys_cached_ms?: number;
  /** Longest wait for projections to pass what was written meanwhile, and for rebuilds that run. Default 10 minutes. */
  patience_ms?: number;
  onProgress?: (progress: { done: number; total: number }) => void;
}

export interface Erased {
  keys: number;
  /** Records of the log that are about the person. */
  records: number;
  rows: number;
  messages: number;
}

/** What the erasure of records cleans itself, whatever the read model: messages, and what is told of failures. */
export const CLEANED_WITH_RECORDS = ['outbox', 'dead_letters'] as const;

type Places = Map<number, number>;
const IDS_PER_TRANSACTION = 1000;

/**
 * Erases a person: destroys their keys, which makes every copy of their records unreadable, then makes the live rows
 * and the stored messages what a rebuild would now make of them. Nodes that still hold a key in memory, and batches
 * that were decoded before, are waited for, and what they wrote is looked through again. Run twice it does the same.
 * Design §5.
 * @throws Error when projections do not get past what was written meanwhile, or a rebuild does not end; it must then be
 * run again
 */
export async function eraseSubject(deps: ErasureDeps, subject: string): Promise<Erased> {
  const topics = [...new Set(deps.erasers.map(({ topic }) => topic))];
  const before = new Map<string, Places>();
  for (const topic of topics) before.set(topic, await appliedUpTo(deps, topic));
  const erased = { keys: await deps.destroyKeys(subject), rows: 0, messages: 0, ids: new Set<string>() };
  const hash = (await deps.subject_keys.hashesOf([subject])).get(subject)!;

  for (const topic of topics) await sweep(deps, hash, erased, topic, () => 0);
  await pause(deps.keys_cached_ms ?? 6000);
  for (const topic of topics) {
    await untilApplied(deps, topic);
    await sweep(deps, hash, erased, topic, (partition) => before.get(topic)!.get(partition) ?? 0);
  }
  const { ids, ...counts } = erased;
  return { ...counts, records: ids.size };
}

/** Dependencies of one pass over the records of a subject. */
export type SweepDeps = Omit<ErasureDeps, 'subject_keys' | 'destroyKeys'>;

/**
 * Makes the live rows and stored messages of a subject whose keys are gone what a rebuild would now make of them, in
 * one pass. Batches that other processes decoded before may follow. @returns how many rows changed
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
    // A record that still opens was sealed under a later key: the person is new to us, and a rebuild shows it too.
    const found = some.filter(({ raw }) => raw === ERASED_RAW);
    for (const { id } of found) erased.ids.add(id);
    for (const eraser of deps.erasers.filter((one) => one.topic === topic)) {
      const { rows, messages } = await apply(deps, eraser, found);
      erased.rows += rows;
      erased.messages += messages;
    }
  }
}

/** Records about the subject, a bounded number at a time: the index is brought up to date, and says where they lie. */
async function* recordsOf(
  deps: SweepDeps,
  hash: string,
  topic: string,
  from: (partition: number) => number,
): AsyncGenerator<LoggedRecord[]> {
  await indexTopic(deps, topic);
  const ends = await deps.broker.bounds(topic);
  const spans = joined(await placesOf(deps, topic, hash), ends).flatMap(({ partition, from: first, to }) => {
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
      deps.onProgress?.({ done, total });
    }
  }
}

/** Records that are rather passed over than a reading begun anew behind them: an archived segment is read whole. */
const PASSED_OVER = { live: 4 * BLOCK, archived: 100_000 };

/** Places that lie close by as one. */
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
        const rows = await eraser.erase(tx, ids);
        const messages = await eraser.messages(tx, ids);
        // A message keeps its place in its channel: a hole would look like loss to every client.
        const changed = await tx.query(
          `update outbox o set data = m.data from unnest($1::text[], $2::text[]) m (record_id, data)
           where left(o.data, 7) = '{"id":"' and substr(o.data, 8, 36) = m.record_id and o.data <> m.data
             returning 1 as one`,
          [[...messages.keys()], [...messages.values()]],
        );
        // What went wrong with a record may quote it.
        await tx.query(
          `update dead_letters d set error = '[erased]' from unnest($2::integer[], $3::text[]) r (partition, position)
           where d.source = $1 and d.partition = r.partition and d.position = r.position`,
          [eraser.topic, found.map(({ partition }) => partition), found.map(({ offset }) => String(offset))],
        );
        return { rows, messages: changed.length };
      });
    } catch (error) {
      if (!(error instanceof RebuildRunning) || Date.now() > deadline) throw error;
      await pause(500);
    }
  }
}

/** Per partition the slowest checkpoint of the topic's projections. */
async function appliedUpTo(deps: ErasureDeps, topic: string): Promise<Places> {
  const places: Places = new Map();
  for (const [partition] of await deps.broker.bounds(topic)) {
    const rows = await deps.db.query<{ position: string }>(
      'select position from checkpoints where source = $1 and partition = $2 and engine = $3 and projection = any($4)',
      [topic, partition, deps.broker.id, deps.erasers.map(({ projection }) => projection)],
    );
    places.set(partition, rows.length === 0 ? 0 : Math.min(...rows.map(({ position }) => Number(position))));
  }
  return places;
}

/**
 * Waits until no batch can be in hand that was decoded while the key was known: every projection is past the end as it
 * is now. Where nobody drives the projections nothing is in hand, and what waits in the log is read without the key.
 */
async function untilApplied(deps: ErasureDeps, topic: string): Promise<void> {
  const ends = await deps.broker.bounds(topic);
  const deadline = Date.now() + (deps.patience_ms ?? 600_000);
  let moved_at = Date.now();
  let last = '';
  for (;;) {
    const places = await appliedUpTo(deps, topic);
    if ([...ends].every(([partition, { next }]) => (places.get(partition) ?? 0) >= next)) return;
    const now = JSON.stringify([...places]);
    if (now !== last) moved_at = Date.now();
    last = now;
    // A batch is cut off by the server after 30 s without a statement: who stood still that long holds none.
    if (Date.now() - moved_at > STANDSTILL_MS) return;
    if (Date.now() > deadline)
      throw new Error(`${topic}: the read models are far behind; run the erasure again when they have caught up`);
    await pause(200);
  }
}

const STANDSTILL_MS = 35_000;
