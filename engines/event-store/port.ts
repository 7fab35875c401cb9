import type { JsonObject } from '../../lib/json/json';

/**
 * State that an append expects of a stream: not existing yet, exactly at that revision (the first event is 0), or any.
 */
export type Expected = 'none' | 'any' | number;

export interface NewEvent {
  /** UUID; appending an event id again returns the first append's result instead of storing it twice. */
  id: string;
  /** `subject:past_or_noun`, like `account:created`. */
  type: string;
  data: JsonObject;
}

export interface StreamWrite {
  stream: string;
  expected: Expected;
  /** At least one. */
  events: NewEvent[];
}

/**
 * Actor, cause and request of an append, as flat strings on every engine: actor_kind, actor_id, credential_id,
 * account_id, acts_for, client_id, correlation_id, causation_id, traceparent, ip. `account_id` and `causation_id` are
 * always present (attributed.ts); `ip` is stored sealed (caller-ip.ts), and `subjects` are the hashes, by commas, of
 * all persons whose personal parts the append holds (sealing.ts).
 */
export type Metadata = Readonly<Record<string, string>>;

/**
 * Member of an append's metadata that overrides the time of recording, as a restore into another engine does. Returned
 * as `recorded_at` of the events and never as metadata.
 */
export const RECORDED_AT = 'lumio_recorded_at';

/** Encryption context of the sealed `ip` of an append. */
export const ipContext = ({ correlation_id = '' }: Metadata): string => `caller-ip ${correlation_id}`;

/** Opaque outside the adapter; comparable only through {@link EventStore.compare}. */
export type Position = string;

export interface AppendResult {
  /** Position of the append's last event. */
  position: Position;
  /** Stream name to the revision of its last event. */
  revisions: Record<string, number>;
}

export interface StoredEvent {
  id: string;
  stream: string;
  revision: number;
  position: Position;
  type: string;
  data: JsonObject;
  /**
   * Stored form of the data, where it differs from `data`: marked with its version, personal members sealed.
   */
  stored?: JsonObject;
  /** The data have personal members in clear, or null in their place: derived values are not kept beyond their use. */
  personal?: true;
  metadata: Metadata;
  /** RFC 3339 UTC. */
  recorded_at: string;
}

export interface EventFilter {
  /** Event types; default all. `note:*` means every type of that area, known to this release or not. */
  types?: readonly string[];
  /** Includes the callers' addresses, as `ip` in the metadata. Default false: few readers need them. */
  ips?: boolean;
}

/** How much of a stream is read, and from which end. */
export interface ReadOptions extends Pick<EventFilter, 'ips'> {
  /** Most events. Default: all. */
  limit?: number;
  /** Newest first: from revision `from` (default: the newest) down. Default false. */
  backwards?: boolean;
}

/** Filter for every type of the area of `type`. */
export const areaOf = (type: string): string => `${type.split(':', 1)[0]}:*`;

/** Whether a filter includes a type. */
export function typeFilter({ types }: EventFilter): (type: string) => boolean {
  if (types === undefined) return () => true;
  const wanted = new Set(types);
  return (type) => wanted.has(type) || wanted.has(areaOf(type));
}

export interface SubscribeOptions extends EventFilter {
  /** Exclusive: the position of the last event already handled; null starts at the beginning. */
  after: Position | null;
  /** Most events per batch. Default 500. */
  batch_size?: number;
}

export interface EventBatch {
  /** Matching events in commit order; may be empty when only other types went by. */
  events: StoredEvent[];
  /** Everything up to here was seen, matching or not. */
  position: Position;
}

/**
 * A running subscription. `done` settles when it has stopped: resolved by `stop()`, rejected when `onBatch` or the
 * engine failed for good.
 */
export interface Subscription {
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

/** An append's expectation did not hold; nothing of that append was stored. */
export class RevisionConflict extends Error {
  constructor(
    readonly stream: string,
    readonly expected: Expected,
    /** Null when the stream does not exist. */
    readonly actual: number | null,
  ) {
    super(`stream ${stream}: expected ${expected}, found ${actual ?? 'no stream'}`);
    this.name = 'RevisionConflict';
  }
}

/**
 * The log of domain events. Contract (test/contracts/event-store.ts holds it for every adapter):
 * - `append` is all-or-nothing over its streams, and durable when it resolves;
 * - an append retried with the same event ids resolves with the first result;
 * - `subscribe` delivers in commit order with no gap, no skip, and every stream in its own order.
 */
export interface EventStore {
  /** Identity of this store; a checkpoint names it, so that positions of another store are never used here. */
  readonly id: string;
  /** @throws RevisionConflict */
  append(writes: readonly StreamWrite[], metadata: Metadata): Promise<AppendResult>;
  /** Events of one stream from revision `from` (default 0) on, oldest first; empty when the stream does not exist. */
  read(stream: string, from?: number, options?: ReadOptions): Promise<StoredEvent[]>;
  /** All events in commit order from `after` (exclusive) to the head at the time of the call. */
  readAll(after: Position | null, filter?: EventFilter): AsyncIterable<EventBatch>;
  subscribe(options: SubscribeOptions, onBatch: (batch: EventBatch) => Promise<void>): Subscription;
  /** Position of the newest event; null when empty. */
  head(): Promise<Position | null>;
  /** Negative, zero or positive, like a sort comparator. */
  compare(a: Position, b: Position): number;
  close(): Promise<void>;
}
