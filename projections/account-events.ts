import { everyEvent, projection, type EventProjection } from '../kernel/projection';

/**
 * Which domain events each account has and where they lie, by what their metadata say: the same on every event store,
 * none of which finds events by account. `types` are all that there are.
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
          // Events of builds before may name none.
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
