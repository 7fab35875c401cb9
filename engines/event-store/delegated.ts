import type { EventStore } from './port';

/** The same store, for a decorator to change some of its methods. */
export const delegated = (store: EventStore): EventStore => ({
  id: store.id,
  append: (writes, metadata) => store.append(writes, metadata),
  read: (stream, from, options) => store.read(stream, from, options),
  readAll: (after, filter) => store.readAll(after, filter),
  subscribe: (options, onBatch) => store.subscribe(options, onBatch),
  head: () => store.head(),
  compare: (a, b) => store.compare(a, b),
  close: () => store.close(),
});
