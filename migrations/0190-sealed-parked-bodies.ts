import type { Migration } from './index';

/**
 * Parked deliveries are kept under a key of whose words they are: `raw_body` is sealed with it. Null in rows of the
 * build before, whose bodies are in clear until they are 30 days old.
 */
export const sealedParkedBodies: Migration = {
  name: '0190-sealed-parked-bodies',
  up: (knex) => knex.raw('alter table ingest_dead_letters add column key_id uuid'),
};
