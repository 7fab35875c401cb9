import type { EventStore } from '../port';

/** Copy of a store whose methods delegate to it; a decorator replaces some of them. */
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
