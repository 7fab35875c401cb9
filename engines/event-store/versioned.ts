import { assertReadable, type Upcasters } from '../../domain/upcasters';
import type { EventBatch, EventStore } from './port';

/**
 * Any event store, with its events brought to the versions that this program knows: the one place of upcasting (design §5).
 * `read` throws UnreadableEvent, since no command may decide over what it cannot read; subscribers get such an event marked, and park it.
 */
export function versionedEventStore(store: EventStore, upcasters: Upcasters): EventStore {
  const batch = ({ events, position }: EventBatch): EventBatch => ({ events: events.map(upcasters.read), position });
  return {
    id: store.id,
    append: (writes, metadata) =>
      store.append(
        writes.map((write) => ({ ...write, events: write.events.map(upcasters.stamp) })),
        metadata,
      ),
    async read(stream, from) {
      const events = (await store.read(stream, from)).map(upcasters.read);
      events.forEach(assertReadable);
      return events;
    },
    async *readAll(after, filter) {
      for await (const one of store.readAll(after, filter)) yield batch(one);
    },
    subscribe: (options, onBatch) => store.subscribe(options, (one) => onBatch(batch(one))),
    head: () => store.head(),
    compare: (a, b) => store.compare(a, b),
    close: () => store.close(),
  };
}
