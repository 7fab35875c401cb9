import { everyEvent, projection, type EventProjection } from '../../kernel/projection';

/**
 * Domain events of each account and their place in the store, from the events' metadata; equal on every event store,
 * because none finds events by account. `types` lists all event types.
 */
export const accountEvents = (types: readonly string[]): EventProjection =>
  projection<EventProjection>({
    name: 'account-events',
    version: 6,
    tables: ['account_events'],
    from: everyEvent(types),
    awaited: false,
    async apply(batch, tx) {
      await tx.query(
        `insert into account_events (account_id, stream, revision, position, type)
         select account_id, stream, revision, position, type
         from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[])
           with ordinality e (account_id, stream, revision, position, type, n)
         order by n on conflict (stream, revision) do nothing`,
        [
          // Events of earlier releases may have no account.
          batch.map(({ metadata, data }) => metadata['account_id'] ?? data['account_id'] ?? 'global'),
          batch.map(({ stream }) => stream),
          batch.map(({ revision }) => revision),
          batch.map(({ position }) => position),
          batch.map(({ type }) => type),
        ],
      );
      return [];
    },
  });
