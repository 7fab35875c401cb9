import { delegated } from '../decorators/delegated';
import { Reader } from './reader';
import { type FeedOptions, FeedTail } from './tail';
import type { EventStore } from '../port';

/**
 * Decorates an event store with one tail for all subscribers of this process: each event is read once, and passed to
 * every subscriber of its type. A subscriber that is behind reads the store itself until it meets the tail; a slow
 * subscriber delays no other. Design §7.
 */
export function fedEventStore(store: EventStore, options: FeedOptions = {}): EventStore {
  const readers = new Set<Reader>();
  let feed: FeedTail | undefined;
  let closed = false;
  return {
    ...delegated(store),
    subscribe(subscribe, onBatch) {
      if (closed) throw new Error('the event store is closed');
      if (feed === undefined || feed.over) feed = new FeedTail(store, options);
      const reader = new Reader(feed, store, subscribe, onBatch, options.log);
      readers.add(reader);
      const forget = () => {
        readers.delete(reader);
        if (readers.size === 0) void feed?.end();
      };
      reader.done.then(forget, forget);
      return reader;
    },
    async close() {
      closed = true;
      await Promise.all([...readers].map((reader) => reader.stop()));
      await feed?.end();
      await store.close();
    },
  };
}
