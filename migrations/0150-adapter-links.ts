import type { Migration } from './index';

/**
 * Connections to vendors that processes hold (ingest/runtime/connection/link-leases.ts): the holder, the state of the
 * connection, and the state for a successor. `token` grows with each new holder; writes with an earlier one fail.
 */
export const adapterLinks: Migration = {
  name: '0150-adapter-links',
  up: (knex) =>
    knex.raw(`
      create table adapter_links (
        link          text primary key,
        vendor        text not null,
        connection_id text not null,
        account_id    uuid,
        token         bigint not null,
        holder        uuid not null,
        status        text not null,
        detail        text,
        status_at     timestamptz not null,
        heard_at      timestamptz,
        given_away_at timestamptz,
        state         jsonb,
        state_token   bigint,
        missed_from   timestamptz,
        missed_to     timestamptz,
        missed_detail text
      );
      create index adapter_links_connection on adapter_links (connection_id)`),
};
