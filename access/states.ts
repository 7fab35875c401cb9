import { LRUCache } from 'lru-cache';
import type { Decider, DomainEvent } from '../kernel/decider';
import type { EventStore, StoredEvent } from '../engines/event-store/port';
import { sizeOf } from './state-size';

/** What one event store's states may take in this process. */
const REMEMBERED_BYTES = 32 * 1024 * 1024;
const PAGE = 1000;
/** Of an entry without its state, and of an id with its revision. */
const BYTES = { entry: 1024, id: 150 } as const;

type Folder<State, Event extends DomainEvent> = Pick<Decider<State, never, Event>, 'initial' | 'evolve'>;

/** A stream as a decider sees it. */
export interface Loaded<State> {
  readonly state: State;
  /** Of the stream's last event; -1 when there is none. */
  readonly revision: number;
  /** Ids that a seed gave to events of this stream, with their revisions. */
  readonly seeded: ReadonlyMap<string, number>;
}

interface Remembered extends Loaded<unknown> {
  readonly seeded: Map<string, number>;
  readonly last_id: string;
  /** Of the state when it was measured last, and how many events it was made of then. */
  readonly measured: { bytes: number; events: number };
}

/**
 * States of streams, remembered as far as they were read. Each load asks the store for what came after, so it is what a
 * read of the whole stream would give, whoever appended: the first event asked for must be the last one remembered, or
 * the stream is another one by now and is read anew. What personal members went into is not kept: an erasure reaches it
 * with the next read, as it did before.
 */
export class States {
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

  /** Bytes that the remembered states take, about. */
  get bytes(): number {
    return this.remembered.calculatedSize;
  }

  /** @throws UnreadableEvent as the store's `read` does */
  async load<State, Event extends DomainEvent>(folder: Folder<State, Event>, stream: string): Promise<Loaded<State>> {
    const key = `${this.numberOf(folder)} ${stream}`;
    const known = this.remembered.get(key);
    let page = await this.page(stream, Math.max(known?.revision ?? 0, 0));
    let from = known;
    if (known !== undefined && page[0]?.id === known.last_id) {
      if (page.length === 1) return known as Loaded<unknown> as Loaded<State>;
      page = page.slice(1);
    } else if (known !== undefined) {
      this.remembered.delete(key);
      from = undefined;
      page = await this.page(stream, 0);
    }

    const seeded = from?.seeded ?? new Map<string, number>();
    let state = (from?.state ?? folder.initial) as State;
    let last: StoredEvent | undefined;
    let personal = false;
    while (page.length > 0) {
      for (const event of page) {
        state = folder.evolve(state, fromStored<Event>(event));
        if (isSeeded(event.id)) seeded.set(event.id, event.revision);
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
 * The state's size, measured when it is made of twice as many events as the last time, so that an event pays for a
 * constant part of it; meanwhile it is taken to grow with its events.
 */
function measure({ state, revision }: Loaded<unknown>, before?: Remembered['measured']): Remembered['measured'] {
  const events = revision + 1;
  if (before && events < 2 * before.events) return before;
  return { bytes: sizeOf(state), events };
}

/** A UUID of version 5: one that derives from a seed. All others are made anew and never asked for again. */
const isSeeded = (id: string): boolean => id[14] === '5';

const statesOfStores = new WeakMap<EventStore, States>();

/** The remembered states of a store in this process. */
export function statesOf(events: EventStore): States {
  let states = statesOfStores.get(events);
  if (states === undefined) statesOfStores.set(events, (states = new States(events)));
  return states;
}

/** The state of one stream and its revision; null when it does not exist. */
export async function load<State, Event extends DomainEvent>(
  events: EventStore,
  folder: Folder<State, Event>,
  stream: string,
): Promise<{ state: State; revision: number } | null> {
  const { state, revision } = await statesOf(events).load(folder, stream);
  return revision === -1 ? null : { state, revision };
}

/** A stored event as the domain knows it. */
export function fromStored<Event extends DomainEvent>(event: Pick<StoredEvent, 'type' | 'data'>): Event {
  return { ...event.data, type: event.type } as unknown as Event;
}
