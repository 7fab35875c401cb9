import { assertDeclared, type EventCatalogue } from '../../../kernel/event';
import { delegated } from './delegated';
import type { EventStore } from '../port';

/**
 * Decorates an event store so that `append` throws NotAsDeclared for events that differ from their area's declaration;
 * no event of such an append is stored.
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
