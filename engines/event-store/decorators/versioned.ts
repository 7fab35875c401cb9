import { assertReadable, ofUnknownType, type Upcasters } from '../../../kernel/upcasters';
import { delegated } from './delegated';
import type { EventBatch, EventStore, StoredEvent } from '../port';

/** Upcasts an event to this program's version; `stored` is set where the stored form differs. */
export function readVersioned(event: StoredEvent, upcasters: Upcasters): StoredEvent {
  const readable = upcasters.read(event);
  if (readable === event && event.stored === undefined) return event;
  const { data } = upcasters.renewed({ type: event.type, data: event.stored ?? event.data });
  return { ...readable, stored: data };
}

/**
 * Decorates an event store so that its events are upcast to this program's versions; nothing else upcasts (design §5).
 * `read` throws UnreadableEvent for a version of a newer release, or with `known` a type of one, because no command may
 * decide over events that it cannot read. Subscribers get such an event marked, and stop there.
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
 * Decorates an event store so that events have the form in which this program would store them, for copies: sealed as
 * they are, without members that newer versions omit, and marked. Appended events are converted alike.
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

/** The methods that return batches, with each batch mapped by `turned`. */
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
