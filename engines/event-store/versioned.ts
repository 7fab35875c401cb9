import { assertReadable, UnreadableEvent, versionOf, type Upcasters } from '../../domain/upcasters';
import type { EventBatch, EventStore } from './port';

/**
 * Any event store, with its events brought to the versions that this program knows: the one place of upcasting (design §5).
 * `read` throws UnreadableEvent, since no command may decide over what it cannot read: a version from a newer build, or with `known` a type
 * from one. Subscribers get such a version marked, and park it; they ask for the types that they know.
 */
export function versionedEventStore(store: EventStore, upcasters: Upcasters, known?: ReadonlySet<string>): EventStore {
  const batch = ({ events, position }: EventBatch): EventBatch => ({ events: events.map(upcasters.read), position });
  return {
    id: store.id,
    append: (writes, metadata) =>
      store.append(
        writes.map((write) => ({ ...write, events: write.events.map(upcasters.stamp) })),
        metadata,
      ),
    async read(stream, from) {
      const stored = await store.read(stream, from);
      const strange = known && stored.find(({ type }) => !known.has(type));
      if (strange)
        throw new UnreadableEvent(
          strange.type,
          `stored as version ${versionOf(strange)}, this program has no such type`,
        );
      const events = stored.map(upcasters.read);
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
