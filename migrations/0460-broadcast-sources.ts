import type { Migration } from './index';

/**
 * `reported_at`: time of the newest report that the broadcast has begun. `known_by`: source of its present state, a
 * `report` of the platform about it, one of its `channel`, or a `look` at the platform's list
 * (projections/runtime/ledger/channel-turns.ts).
 */
export const broadcastSources: Migration = {
  name: '0460-broadcast-sources',
  up: (knex) =>
    knex.raw(`
      alter table channel_status
        add column reported_at timestamptz,
        add column known_by text not null default 'report';
      create index channel_status_looks on channel_status (platform, updated_at)
        where known_by = 'look' and not is_online`),
};
