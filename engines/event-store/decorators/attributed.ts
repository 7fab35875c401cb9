import { GLOBAL_ACCOUNT } from '../../../kernel/event';
import { delegated } from './delegated';
import type { EventStore, Metadata, StreamWrite } from '../port';

/**
 * Decorates an event store so that the metadata of each event have its account and its cause, whoever appends. The
 * account is the one in the event's data; the caller's active account may be another one.
 * Source: design §5.
 */
export const attributedEventStore = (store: EventStore): EventStore => ({
  ...delegated(store),
  append: (writes, metadata) => store.append(writes, attributed(writes, metadata)),
});

function attributed(writes: readonly StreamWrite[], metadata: Metadata): Metadata {
  const events = writes.flatMap((write) => write.events);
  const cause = metadata['causation_id'] ?? metadata['correlation_id'] ?? events[0]?.id;
  const owner = events.map(({ data }) => data['account_id']).find((account) => typeof account === 'string');
  return {
    ...metadata,
    account_id: (owner as string | undefined) ?? GLOBAL_ACCOUNT,
    ...(cause !== undefined && { causation_id: cause }),
  };
}
