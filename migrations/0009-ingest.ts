import type { Migration } from './index';

/**
 * Signed deliveries that could not be normalised or stored: kept with their raw body and the reason, so that an
 * operator can retry them after a fix. A repeated delivery is counted, not stored twice. Design §6.
 */
export const ingest: Migration = {
  name: '0009-ingest',
  async up(knex) {
    await knex.raw(`
      create table ingest_dead_letters (
        id                uuid primary key,
        vendor            text not null,
        reason            text not null,
        detail            text not null,
        -- Only those that the normaliser reads; never a signature.
        headers           jsonb not null,
        raw_body          bytea not null,
        -- Hex SHA-256 of vendor, headers and body: the same bytes under another event type or shop are another delivery.
        delivery_key      text not null unique,
        trace             text,
        status            text not null default 'parked' check (status in ('parked', 'retried', 'dropped')),
        attempts          integer not null default 1,
        first_received_at timestamptz not null,
        last_received_at  timestamptz not null,
        settled_at        timestamptz
      );
      create index ingest_dead_letters_parked on ingest_dead_letters (id) where status = 'parked';
    `);
  },
};
