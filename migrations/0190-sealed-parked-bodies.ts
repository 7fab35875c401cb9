import type { Migration } from './index';

/**
 * Key that seals `raw_body` of a parked delivery, of the person whom it concerns. Null in rows of the previous release,
 * whose bodies are in clear until they are 30 days old.
 */
export const sealedParkedBodies: Migration = {
  name: '0190-sealed-parked-bodies',
  up: (knex) => knex.raw('alter table ingest_dead_letters add column key_id uuid'),
};
