import { assertDeclared, type EventCatalogue } from '../../kernel/event';
import { delegated } from './delegated';
import type { EventStore } from './port';

/**
 * Any event store, refusing what is not as its area declares it: nothing of such an append is stored.
 * `append` throws NotAsDeclared.
 */
export function declaredEventStore(store: EventStore, declared: EventCatalogue): EventStore {
  return {
    ...delegated(store),
    async append(writes, metadata) {
      for (const { events } of writes) for (const { type, data } of events) assertDeclared(declared, type, data);
      return store.append(writes, metadata);
    },
  };
}
