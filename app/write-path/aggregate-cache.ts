import { LRUCache } from 'lru-cache';
import type { Decider, DomainEvent } from '../../kernel/decider';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import { SeededIds } from './seeded-ids';
import { sizeOf } from './aggregate-size';

/** Maximum bytes of cached state per event store in this process. */
const REMEMBERED_BYTES = 32 * 1024 * 1024;
const PAGE = 1000;
/** Bytes of an entry without its state, and of an id with its revision. */
const BYTES = { entry: 1024, id: 200 } as const;

type Fold<State, Event extends DomainEvent> = Pick<Decider<State, never, Event>, 'initial' | 'evolve'>;

/** Folded state of a stream. */
export interface LoadedAggregate<State> {
  readonly state: State;
  /** Revision of the stream's last event; -1 without events. */
  readonly revision: number;
  /** Ids of this stream's events that derive from a seed. */
  readonly seeded: Pick<SeededIds, 'revisionOf'>;
}

interface Remembered extends LoadedAggregate<unknown> {
  readonly seeded: SeededIds;
  readonly last_id: string;
  /** Size of the state at its last measurement, and its number of events then. */
  readonly measured: { bytes: number; events: number };
}

/**
 * Caches folded aggregate state per stream. Each load reads the events from the cached revision on, so the result
 * equals a full replay, whoever appended. If the first of them is not the cached last event, the stream was replaced
 * and is read again. State built from personal data is not cached, so that an erasure applies to the next read.
 */
export class AggregateCache {
  private readonly remembered: LRUCache<string, Remembered>;
  private readonly numbers = new WeakMap<object, number>();
  private folders = 0;

  constructor(
    private readonly events: Pick<EventStore, 'read'>,
    max_bytes = REMEMBERED_BYTES,
  ) {
    this.remembered = new LRUCache({
      maxSize: max_bytes,
      sizeCalculation: ({ measured, revision, seeded }) =>
        BYTES.entry + Math.ceil((measured.bytes * (revision + 1)) / measured.events) + BYTES.id * seeded.size,
    });
  }

  /** Approximate bytes of the cached states. */
  get bytes(): number {
    return this.remembered.calculatedSize;
  }

  /** @throws UnreadableEvent as the store's `read` does */
  async load<State, Event extends DomainEvent>(
    folder: Fold<State, Event>,
    stream: string,
  ): Promise<LoadedAggregate<State>> {
    const key = `${this.numberOf(folder)} ${stream}`;
    const known = this.remembered.get(key);
    let page = await this.page(stream, Math.max(known?.revision ?? 0, 0));
    let from = known;
    if (known !== undefined && page[0]?.id === known.last_id) {
      if (page.length === 1) return known as LoadedAggregate<unknown> as LoadedAggregate<State>;
      page = page.slice(1);
    } else if (known !== undefined) {
      this.remembered.delete(key);
      from = undefined;
      page = await this.page(stream, 0);
    }

    const seeded = from?.seeded ?? new SeededIds();
    let state = (from?.state ?? folder.initial) as State;
    let last: StoredEvent | undefined;
    let personal = false;
    while (page.length > 0) {
      for (const event of page) {
        state = folder.evolve(state, fromStored<Event>(event));
        seeded.add(event);
        personal ||= event.personal === true;
      }
      last = page[page.length - 1]!;
      page = page.length < PAGE - 1 ? [] : await this.page(stream, last.revision + 1);
    }
    if (last === undefined) return { state, revision: -1, seeded };
    const loaded = { state, revision: last.revision, seeded, last_id: last.id };
    if (personal) this.remembered.delete(key);
    else this.remembered.set(key, { ...loaded, measured: measure(loaded, from?.measured) });
    return loaded;
  }

  private page = (stream: string, from: number) => this.events.read(stream, from, { limit: PAGE });

  private numberOf(folder: object): number {
    const known = this.numbers.get(folder);
    if (known !== undefined) return known;
    this.numbers.set(folder, (this.folders += 1));
    return this.folders;
  }
}

/**
 * Size of a state. Measured again when its events have doubled, so that the cost per event is constant; estimated in
 * between as proportional to its events.
 */
function measure(
  { state, revision }: LoadedAggregate<unknown>,
  before?: Remembered['measured'],
): Remembered['measured'] {
  const events = revision + 1;
  if (before && events < 2 * before.events) return before;
  return { bytes: sizeOf(state), events };
}

const statesOfStores = new WeakMap<EventStore, AggregateCache>();

/** The state cache of a store in this process. */
export function aggregateCacheOf(events: EventStore): AggregateCache {
  let states = statesOfStores.get(events);
  if (states === undefined) statesOfStores.set(events, (states = new AggregateCache(events)));
  return states;
}

/** State and revision of a stream; null when it does not exist. */
export async function load<State, Event extends DomainEvent>(
  events: EventStore,
  folder: Fold<State, Event>,
  stream: string,
): Promise<{ state: State; revision: number } | null> {
  const { state, revision } = await aggregateCacheOf(events).load(folder, stream);
  return revision === -1 ? null : { state, revision };
}

/** Converts a stored event to a domain event. */
export function fromStored<Event extends DomainEvent>(event: Pick<StoredEvent, 'type' | 'data'>): Event {
  return { ...event.data, type: event.type } as unknown as Event;
}
