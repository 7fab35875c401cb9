import { assertReadable } from '../../../kernel/upcasters';
import type { Queryable } from '../../../engines/postgres/port';
import { isEventProjection, isRecordProjection } from '../checkpoint/checkpoints';
import { park, waitingStreams, type Item, type Parked } from '../dead-letter/dead-letters';
import { describe, ProjectionFault } from './failures';
import { failureKind } from '../../../kernel/failures';
import type { ApplyMode, ChannelMessage, Projection, RecordProjection } from '../../../kernel/projection';
import type { LoggedRecord } from '../../../engines/records/port';
import { askLedger, concerned, dropUncounted, partsOf, takeIntoLedger } from '../ledger/ledger';

export interface Applied {
  messages: ChannelMessage[];
  parked: Parked[];
}

/**
 * Thrown by {@link applyPlainly} for a data error: the transaction is lost, and {@link applyCarefully} finds the
 * record.
 */
export class DataFailure extends Error {
  constructor(override readonly cause: unknown) {
    super(describe(cause));
    this.name = 'DataFailure';
  }
}

const named = (p: Projection, error: unknown) =>
  failureKind(error) === 'bug' ? new ProjectionFault(p.name, error) : error;

/** Selects by the ledger the records that count, now or after the load, and applies them. */
export async function applyRecords(
  p: RecordProjection,
  all: readonly LoggedRecord[],
  tx: Queryable,
  mode: ApplyMode,
): Promise<ChannelMessage[]> {
  const batch = await concerned(p, all, tx);
  if (batch.length === 0) return [];
  const { records, again, applied, passed_over } = mode.rebuilding
    ? await askLedger(p, batch, tx, mode.loading ? p.late_ledger?.at_once : undefined)
    : await takeIntoLedger(p, batch, tx);
  const repeats = p.repeats === undefined ? [] : passed_over.filter((record) => p.repeats!(record));
  if (records.length === 0 && repeats.length === 0) return [];
  const messages = await p.apply(records, tx, { ...mode, again, applied, repeats });
  await mode.whenCounted?.(tx, p.name, records);
  return messages;
}

/**
 * Steps that end the load phase (`mode.loading`) of a rebuild, in order. Each is a transaction of its own, so that none
 * takes long, and may be repeated.
 */
export async function loadEndings(p: Projection, tx: Queryable): Promise<((tx: Queryable) => Promise<void>)[]> {
  const steps: ((tx: Queryable) => Promise<void>)[] = [];
  if (isRecordProjection(p) && p.late_ledger) {
    for (const part of await partsOf(p.late_ledger.table, tx)) steps.push((step) => dropUncounted(p, part, step));
  }
  steps.push(async (step) => p.loaded?.(step));
  return steps;
}

/** Calls the projection. */
async function call(p: Projection, items: readonly Item[], tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]> {
  if (items.length === 0) return [];
  if (isRecordProjection(p)) {
    return applyRecords(
      p,
      items.flatMap((item) => (item.kind === 'record' ? [item.record] : [])),
      tx,
      mode,
    );
  }
  const events = items.flatMap((item) => (item.kind === 'event' ? [item.event] : []));
  events.forEach(assertReadable);
  return p.apply(events, tx, mode);
}

const streamOf = (item: Item): string | null => (item.kind === 'event' ? item.event.stream : null);

/** Separates the events of waiting streams, which are parked behind the stream's first failure, from the others. */
function split(items: readonly Item[], waiting: ReadonlySet<string>): { free: Item[]; blocked: Parked[] } {
  const free: Item[] = [];
  const blocked: Parked[] = [];
  for (const item of items) {
    const stream = streamOf(item);
    if (stream !== null && waiting.has(stream)) {
      blocked.push({ item, reason: 'blocked', error: `an earlier event of ${stream} is parked` });
    } else {
      free.push(item);
    }
  }
  return { free, blocked };
}

async function waitingOf(p: Projection, items: readonly Item[], tx: Queryable): Promise<Set<string>> {
  if (!isEventProjection(p) || items.length === 0) return new Set();
  return waitingStreams(tx, p, [...new Set(items.map((item) => streamOf(item)!))]);
}

/**
 * Applies a batch in the caller's transaction without savepoints: the fast way, for batches without poison.
 * @throws DataFailure when a record is to blame (the caller rolls back and calls {@link applyCarefully});
 * ProjectionFault; other errors unchanged
 */
export async function applyPlainly(
  p: Projection,
  items: readonly Item[],
  undecodable: readonly Parked[],
  tx: Queryable,
  mode: ApplyMode,
): Promise<Applied> {
  const { free, blocked } = split(items, await waitingOf(p, items, tx));
  let messages: ChannelMessage[];
  try {
    messages = await call(p, free, tx, mode);
  } catch (error) {
    throw failureKind(error) === 'data' ? new DataFailure(error) : named(p, error);
  }
  const parked = [...undecodable, ...blocked];
  await park(tx, p, parked, mode);
  return { messages, parked };
}

/**
 * Applies a batch under savepoints: bisects down to the records that cannot be applied and parks exactly these (and the
 * later events of their streams); the effects of all others stay, in their order. `known_waiting` are the streams that
 * wait already; when absent, the dead letters are read.
 * @throws ProjectionFault; other errors unchanged
 */
export async function applyCarefully(
  p: Projection,
  items: readonly Item[],
  undecodable: readonly Parked[],
  tx: Queryable,
  mode: ApplyMode,
  known_waiting?: ReadonlySet<string>,
): Promise<Applied> {
  const waiting = new Set(known_waiting ?? (await waitingOf(p, items, tx)));
  const messages: ChannelMessage[] = [];
  const parked: Parked[] = [...undecodable];

  const bisect = async (part: readonly Item[]): Promise<void> => {
    const { free, blocked } = split(part, waiting);
    if (free.length === 0) {
      parked.push(...blocked);
      return;
    }
    await tx.query('savepoint part');
    let made: ChannelMessage[];
    try {
      made = await call(p, free, tx, mode);
    } catch (error) {
      if (failureKind(error) !== 'data') throw named(p, error);
      await tx.query('rollback to savepoint part; release savepoint part');
      if (free.length > 1) {
        const middle = free.length >> 1;
        await bisect(free.slice(0, middle));
        await bisect(free.slice(middle));
      } else {
        const stream = streamOf(free[0]!);
        if (stream !== null) waiting.add(stream);
        parked.push({ item: free[0]!, reason: 'poison', error: describe(error) });
      }
      parked.push(...blocked);
      return;
    }
    await tx.query('release savepoint part');
    messages.push(...made);
    parked.push(...blocked);
  };

  await bisect(items);
  await park(tx, p, parked, mode);
  return { messages, parked };
}
