import type { Migration } from './index';

/**
 * People who have written in an account's own chat rooms. `person_key` is the id of the key that seals their records: a
 * person who returns after an erasure has another key, and is new. Only the projection `chatters` writes it.
 */
export const chatters: Migration = {
  name: '0315-chatters',
  up: (knex) =>
    knex.raw(`
      create table chatters (
        account_id        uuid not null,
        platform          text not null,
        person_key        uuid not null,
        first_received_at timestamptz not null,
        primary key (account_id, person_key)
      )`),
};
