import type { JsonObject } from '../../kernel/json';

/**
 * What a stream must look like for an append: not existing yet, exactly at that revision (the first event is 0), or
 * anything.
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
 * Who, why and on whose behalf; flat strings on every engine: actor_kind, actor_id, credential_id, account_id,
 * client_id, correlation_id, causation_id, traceparent, ip. `account_id` and `causation_id` are always there
 * (attributed.ts); `ip` is stored sealed (caller-ip.ts), and `subjects` are the hashes, by commas, of all persons
 * whose personal parts the append holds (sealing.ts).
 */
export type Metadata = Readonly<Record<string, string>>;

/** What the sealed `ip` of an append is bound to. */
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
   * The data as this program would store them, where `data` are not: marked with their version, personal members
   * sealed.
   */
  stored?: JsonObject;
  /** Holds personal members in clear, or null in their place: what is made of it is not kept beyond its use. */
  personal?: true;
  metadata: Metadata;
  /** RFC 3339 UTC. */
  recorded_at: string;
}

export interface EventFilter {
  /** Only these event types; absent means all. `note:*` means every type of that area, known to this build or not. */
  types?: readonly string[];
  /** With the addresses that the callers had, as `ip` in the metadata. Default false: few readers need them. */
  ips?: boolean;
}

/** How much of a stream is read, and from which end. */
export interface ReadOptions extends Pick<EventFilter, 'ips'> {
  /** Most events. Default: all. */
  limit?: number;
  /** Newest first: from revision `from` (default: the newest) down. Default false. */
  backwards?: boolean;
}

/** Every type of the area that this one is of, as a filter says it. */
export const areaOf = (type: string): string => `${type.split(':', 1)[0]}:*`;

/** Whether a filter lets a type through. */
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
