import type { Queryable } from '../engines/postgres/port';
import type { StoredEvent } from '../engines/event-store/port';
import type { JobRequest } from './job';
import type { LoggedRecord } from '../engines/records/port';

/**
 * Data that can never be applied as it is: `apply` throws it, and the record is parked. Any other error that `apply`
 * throws is a defect of the program and stops the projection.
 */
export class DataError extends Error {
  override readonly name = 'DataError';
}

/** A message for one WebSocket channel; stored in the outbox in the projection's own transaction. */
export interface ChannelMessage {
  channel: string;
  /** Account of the channel, where its name does not end with the account's id; constant per channel. */
  account_id?: string;
  /** The server message's `event_type`. */
  event_type: string;
  /** JSON text of `data`. */
  data: string;
  /** W3C traceparent of the record it came from; kept only while tracing is on. */
  trace?: string | null;
}

export type Source =
  { kind: 'topic'; topic: string } | { kind: 'domain_events'; types: readonly string[]; every?: true };

export const topic = (name: string) => ({ kind: 'topic', topic: name }) as const satisfies Source;
export const domainEvents = (types: readonly string[]) => ({ kind: 'domain_events', types }) as const satisfies Source;
/** All types that there are: one that is added later was never passed over, so that nothing is built anew for it. */
export const everyEvent = (types: readonly string[]) =>
  ({ kind: 'domain_events', types, every: true }) as const satisfies Source;

interface ProjectionBase {
  /** Key of its checkpoints and dead letters: constant, also when its file is renamed. */
  name: string;
  /** Raised when the tables' meaning changes: the runtime then asks for a rebuild. */
  version: number;
  /**
   * Tables that a rebuild replays into; named without a schema in every statement, so that a shadow schema can stand
   * in.
   */
  tables: readonly string[];
  /** False for what no answer shows: commands do not wait until it has their events. Default true. */
  awaited?: boolean;
  /**
   * True for what decides who may do what. A process of an earlier version refuses to read its tables while no process
   * drives them: rights that were taken away since would still hold.
   */
  rights?: boolean;
  /** Wake-up that each commit with applied events sends; a lost one only causes a delay. */
  wakes?: string;
  /** Names of the jobs that `apply` asks for; one that nobody has declared stops the start. */
  jobs?: readonly string[];
  /**
   * Indexes of theirs that `apply` does not need: a rebuild makes them after the load, sorted, which is far cheaper
   * than row by row.
   */
  late_indexes?: readonly string[];
  /**
   * Ends the part of a rebuild that `mode.loading` names: from here the tables are as `apply` alone would have made
   * them. Before the late indexes.
   */
  loaded?(tx: Queryable): Promise<void>;
  /** Text of the definition that determines its rows; default: the text of `apply` and `loaded`. */
  program?: string;
}

/**
 * Reads a topic of records. `apply` gets the records that count (the runtime keeps the ledger of external ids), in the
 * log's order; it is set-based, runs in one transaction with outbox and checkpoint, and must give the same rows when
 * records come again.
 */
export interface RecordProjection extends ProjectionBase {
  from: { kind: 'topic'; topic: string };
  late_ledger?: LateLedger;
  concerns?: Concerns;
  /** Selects the duplicates (another record with their id has counted) that `apply` receives as `mode.repeats`. */
  repeats?(record: LoggedRecord): boolean;
  apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]>;
}

/**
 * A rebuild asks the ledger for all rows at once when they are loaded, and takes away those that do not count: a tenth
 * of what asking page after page costs. Until then `apply` gets records that do not count, too.
 */
export interface LateLedger {
  /** Of {@link ProjectionBase.tables}, with a row for each record that has an external id. */
  table: string;
  /** Records with effects beyond their row, or whose row may stand in another's way: these are asked about at once. */
  at_once(record: LoggedRecord): boolean;
}

/** Selects the records that have effects now. The others stay out of the ledger, as if they had not arrived. */
export interface Concerns {
  among(batch: readonly LoggedRecord[], tx: Queryable): Promise<readonly LoggedRecord[]>;
  /**
   * Projection of the same topic that takes all records into its ledger. Records that this ledger has by another record
   * are repetitions, also of a record that had no effects; while that projection is behind, a repetition of such a
   * record counts.
   */
  stored_by?: string;
}

/** Reads domain events. */
export interface EventProjection extends ProjectionBase {
  from: { kind: 'domain_events'; types: readonly string[]; every?: true };
  /** Types that may take rights away: a command that appends one waits longer, until they are gone. */
  revokes?: readonly string[];
  apply(batch: readonly StoredEvent[], tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]>;
}

export interface ApplyMode {
  /** True while a rebuild fills shadow tables: effects outside `tables` (ledger, messages) must not be made again. */
  rebuilding: boolean;
  /** True for what came before the projection was first driven: nothing is announced, all else is as ever. */
  silent?: boolean;
  /**
   * True for the first and by far largest part of that: what `loaded` does for all rows at once need not be done for
   * each. A batch that fails comes again without it.
   */
  loading?: boolean;
  /**
   * Stores jobs in the transaction that moves the checkpoint, each key once. Absent where nothing may follow:
   * in a rebuild and in a silent build.
   */
  enqueue?: (tx: Queryable, jobs: readonly JobRequest[]) => Promise<void>;
  /** Called with the records that count, once, in the same transaction; absent where {@link enqueue} is. */
  whenCounted?: (tx: Queryable, projection: string, records: readonly LoggedRecord[]) => Promise<void>;
  /** Records of a topic: true when some of the batch may have been applied before. False: none was. */
  again?: boolean;
  /**
   * Records of a topic: ids, in lower case, of those whose effects an earlier transaction committed. A projection
   * without rows announces them no second time.
   */
  applied?: ReadonlySet<string>;
  /** Records of a topic, in the log's order: see {@link RecordProjection.repeats}. */
  repeats?: readonly LoggedRecord[];
}

export type Projection = RecordProjection | EventProjection;

/** Declares a projection; a builder of data only, the runtime drives it. */
export function projection<P extends Projection>(declared: P): P {
  return declared;
}
