import type { StoredEvent } from '../../../engines/event-store/port';
import type { BrokerRecord } from '../../../engines/broker/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { RecordLog } from '../../../engines/records/port';
import type { Wakeups } from '../../../engines/wakeups/port';
import { applyCarefully } from '../drive/apply';
import type { JobRequests } from '../checkpoint/commits';
import { lockCheckpoints } from '../checkpoint/checkpoints';
import { positionOf, type DeadLetter, type Item, type Parked } from './dead-letters';
import { describe } from '../drive/failures';
import { OUTBOX_WAKEUP, writeOutbox } from '../outbox/outbox';
import type { ApplyMode, ChannelMessage, Projection } from '../../../kernel/projection';
import { keepRebuildsAway } from '../rebuild/lock';

export interface SettleDeps {
  db: Database;
  records: Pick<RecordLog, 'decode'>;
  projections: readonly Projection[];
  /** Notified after messages were written; a short-lived process may omit it: realtime then finds them by its poll. */
  wakeups?: Wakeups;
  /** Required for letters of a projection that requests jobs. */
  jobs?: Pick<JobRequests, 'enqueueNamed' | 'wake'>;
  /** See {@link ApplyMode}; requires {@link jobs}. */
  whenCounted?: ApplyMode['whenCounted'];
  /** Decodes events from their stored form: a later program can read a letter that this one cannot. */
  readStored(events: readonly StoredEvent[]): Promise<StoredEvent[]>;
  /** Maximum letters of a stream in memory and in one transaction. Default 100. */
  page?: number;
}

const PAGE = 100;

export interface Settled {
  /** Letters applied now. */
  retried: number;
  dropped: number;
  /** Letters that still wait: the one that failed again, and those behind it. */
  waiting: number;
  /** Error of the first failed letter. */
  error: string | null;
}

/** The letter cannot be settled: it is unknown, settled already, or of a projection that this program does not have. */
export class NotSettled extends Error {
  override readonly name = 'NotSettled';
}

/**
 * Applies a parked record, or a parked event and then the letters behind it in its stream, in order, up to the first
 * failure. Exactly once: effects, channel messages and the letters' state change in one transaction, with the live side
 * paused at its fence; a long stream takes several, each continuing where the previous one ended.
 * @throws NotSettled, RebuildRunning
 */
export function retryDeadLetter(deps: SettleDeps, id: number): Promise<Settled> {
  return retryOrDrop(deps, id, 'retry');
}

/**
 * Drops a parked record or event for good; the stream that waited behind it continues.
 * @throws NotSettled, RebuildRunning
 */
export function dropDeadLetter(deps: SettleDeps, id: number): Promise<Settled> {
  return retryOrDrop(deps, id, 'drop');
}

async function retryOrDrop(deps: SettleDeps, id: number, how: 'retry' | 'drop'): Promise<Settled> {
  let { settled, next } = await settlePage(deps, id, how);
  while (next !== null) {
    try {
      const more = await settlePage(deps, next, 'retry');
      next = more.next;
      settled = { ...more.settled, retried: settled.retried + more.settled.retried, dropped: settled.dropped };
    } catch (error) {
      // Another process continues the stream.
      if (error instanceof NotSettled) return settled;
      throw error;
    }
  }
  return settled;
}

/** `next`: first letter of the stream after this page, when no letter in it has failed. */
async function settlePage(
  deps: SettleDeps,
  id: number,
  how: 'retry' | 'drop',
): Promise<{ settled: Settled; next: number | null }> {
  const { settled, next, messages } = await deps.db.transaction(async (tx) => {
    const letter = await lockLetter(tx, id);
    const p = deps.projections.find(({ name }) => name === letter.projection);
    if (!p)
      throw new NotSettled(`dead letter ${id} is of projection ${letter.projection}, which this program does not have`);
    await keepRebuildsAway(tx, p.name);
    // From here to the commit no live batch runs, so none can park another event behind a stream that is being freed.
    await lockCheckpoints(tx, p);
    if ((await lockLetter(tx, id)).status !== 'parked') throw new NotSettled(`dead letter ${id} was settled meanwhile`);

    let dropped = 0;
    if (how === 'drop') {
      await tx.query(`update dead_letters set status = 'dropped', settled_at = clock_timestamp() where id = $1`, [id]);
      dropped = 1;
    }
    const { page = PAGE } = deps;
    const letters = await lettersToApply(tx, letter, how, page);
    const applied = await applyLetters(deps, tx, p, letters);
    await writeOutbox(tx, applied.messages);
    const rest = letters.length < page ? { count: 0, first: null } : await waitingBehind(tx, letters.at(-1)!);
    const failed = applied.settled.waiting > 0;
    return {
      settled: { ...applied.settled, dropped, waiting: applied.settled.waiting + (failed ? rest.count : 0) },
      next: failed ? null : rest.first,
      messages: applied.messages.length,
    };
  });
  if (messages > 0) deps.wakeups?.notify(OUTBOX_WAKEUP);
  deps.jobs?.wake();
  return { settled, next };
}

/** @throws NotSettled when the letter is missing or settled already */
export async function lockLetter(tx: Queryable, id: number): Promise<DeadLetter> {
  const [letter] = await tx.query<DeadLetter>('select * from dead_letters where id = $1', [id]);
  if (!letter) throw new NotSettled(`there is no dead letter ${id}`);
  if (letter.status !== 'parked') throw new NotSettled(`dead letter ${id} is ${letter.status} already`);
  return letter;
}

/** Returns a record alone; of a stream its waiting letters, unless the drop left an earlier failure at its head. */
async function lettersToApply(
  tx: Queryable,
  letter: DeadLetter,
  how: 'retry' | 'drop',
  page: number,
): Promise<DeadLetter[]> {
  if (letter.stream === null) return how === 'retry' ? [letter] : [];
  const waiting = await tx.query<DeadLetter>(
    `select * from dead_letters where projection = $1 and stream = $2 and status = 'parked' order by revision limit $3`,
    [letter.projection, letter.stream, page],
  );
  return how === 'drop' && waiting[0]?.reason !== 'blocked' ? [] : waiting;
}

/** Counts the letters that wait in the stream behind the last one of a page; none for a record. */
async function waitingBehind(tx: Queryable, { projection, stream, revision }: DeadLetter) {
  const [row] = await tx.query<{ count: number; first: number | null }>(
    `select count(*) as count, (array_agg(id order by revision))[1] as first from dead_letters
     where projection = $1 and stream = $2 and status = 'parked' and revision > $3`,
    [projection, stream, revision],
  );
  return row!;
}

async function applyLetters(
  deps: SettleDeps,
  tx: Queryable,
  p: Projection,
  letters: readonly DeadLetter[],
): Promise<{ settled: Omit<Settled, 'dropped'>; messages: ChannelMessage[] }> {
  const messages: ChannelMessage[] = [];
  const parked: Parked[] = [];
  // In a stream the silently parked letters come first; after a failure among them the rest keeps waiting.
  for (const silent of [true, false]) {
    const { items, undecodable } = await itemsOf(
      deps,
      letters.filter((letter) => letter.silent === silent),
    );
    const waiting = new Set(parked.flatMap(({ item }) => (item.kind === 'event' ? [item.event.stream] : [])));
    const enqueue: ApplyMode['enqueue'] = (within, jobs) => deps.jobs!.enqueueNamed(within, jobs);
    const mode = { rebuilding: false, silent, ...(!silent && { enqueue, whenCounted: deps.whenCounted }) };
    const applied = await applyCarefully(p, items, undecodable, tx, mode, waiting);
    if (!silent) messages.push(...applied.messages);
    parked.push(...applied.parked);
  }
  const left = new Set(parked.map(({ item }) => key(positionOf(item))));
  const done = letters.filter((letter) => !left.has(key(letter))).map(({ id }) => id);
  await tx.query(
    `update dead_letters set status = 'retried', settled_at = clock_timestamp(), attempts = attempts + 1
       where id = any($1::bigint[])`,
    [done],
  );
  const failed = parked.find(({ reason }) => reason !== 'blocked');
  return { settled: { retried: done.length, waiting: parked.length, error: failed?.error ?? null }, messages };
}

const key = ({ partition, position }: { partition: number; position: string }) => `${partition}/${position}`;

async function itemsOf(
  deps: SettleDeps,
  letters: readonly DeadLetter[],
): Promise<{ items: Item[]; undecodable: Parked[] }> {
  const items: Item[] = [];
  const undecodable: Parked[] = [];
  for (const letter of letters) {
    if (letter.event !== null) {
      // A restore into another event store updates the letter's position, not the one inside its event.
      const event = { ...(JSON.parse(letter.event) as StoredEvent), position: letter.position };
      for (const readable of await deps.readStored([event])) items.push({ kind: 'event', event: readable });
      continue;
    }
    const stored: BrokerRecord = {
      topic: letter.source,
      partition: letter.partition,
      offset: Number(letter.position),
      key: letter.record_key ?? '',
      value: letter.record ?? Buffer.alloc(0),
      headers: JSON.parse(letter.headers ?? '{}') as Record<string, string>,
      appended_at: letter.appended_at ?? letter.first_failed_at,
    };
    const decoded = await deps.records.decode([stored]);
    for (const record of decoded.records) items.push({ kind: 'record', record, stored });
    for (const { error } of decoded.undecodable) {
      undecodable.push({ item: { kind: 'undecodable', stored }, reason: 'undecodable', error: describe(error) });
    }
  }
  return { items, undecodable };
}
