import { assertReadable, ofUnknownType, type Upcasters } from '../../kernel/upcasters';
import { delegated } from './delegated';
import type { EventBatch, EventStore, StoredEvent } from './port';

/** The event in the version that this program knows, with what it would store beside it where that differs. */
export function readVersioned(event: StoredEvent, upcasters: Upcasters): StoredEvent {
  const readable = upcasters.read(event);
  if (readable === event && event.stored === undefined) return event;
  const { data } = upcasters.renewed({ type: event.type, data: event.stored ?? event.data });
  return { ...readable, stored: data };
}

/**
 * Any event store, with its events brought to the versions that this program knows: the one place of upcasting (design
 * §5). `read` throws UnreadableEvent, since no command may decide over what it cannot read: a version from a newer
 * build, or with `known` a type from one. Subscribers get such an event marked, and go no further.
 */
export function versionedEventStore(store: EventStore, upcasters: Upcasters, known?: ReadonlySet<string>): EventStore {
  const read = (event: StoredEvent) =>
    known === undefined || known.has(event.type)
      ? readVersioned(event, upcasters)
      : { ...ofUnknownType(event), stored: event.stored ?? event.data };
  const batch = ({ events, position }: EventBatch): EventBatch => ({ events: events.map(read), position });
  return {
    ...delegated(store),
    append: (writes, metadata) =>
      store.append(
        writes.map((write) => ({ ...write, events: write.events.map(upcasters.stamp) })),
        metadata,
      ),
    async read(stream, from, options) {
      const events = (await store.read(stream, from, options)).map(read);
      events.forEach(assertReadable);
      return events;
    },
    ...inBatches(store, batch),
  };
}

/**
 * The events of a store as this program would store them, for copies: sealed as they are, without what newer versions
 * leave out, and marked. What is appended is taken the same way.
 */
export function renewedEventStore(store: EventStore, { renewed }: Upcasters): EventStore {
  const batch = ({ events, position }: EventBatch): EventBatch => ({ events: events.map(renewed), position });
  return {
    ...delegated(store),
    append: (writes, metadata) =>
      store.append(
        writes.map((write) => ({ ...write, events: write.events.map(renewed) })),
        metadata,
      ),
    read: async (stream, from, options) => (await store.read(stream, from, options)).map(renewed),
    ...inBatches(store, batch),
  };
}

/** The ways to read that give batches, each batch turned into another. */
function inBatches(
  store: EventStore,
  turned: (batch: EventBatch) => EventBatch,
): Pick<EventStore, 'readAll' | 'subscribe'> {
  return {
    async *readAll(after, filter) {
      for await (const one of store.readAll(after, filter)) yield turned(one);
    },
    subscribe: (options, onBatch) => store.subscribe(options, (one) => onBatch(turned(one))),
  };
}
