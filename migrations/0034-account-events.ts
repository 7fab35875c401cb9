import type { Migration } from './index';

/** Positions of each account's domain events, in commit order; events without an account are under `global`. */
export const accountEvents: Migration = {
  name: '0034-account-events',
  async up(knex) {
    await knex.raw(`
      create table account_events (
        account_id text not null,
        place      bigint generated always as identity,
        stream     text not null,
        revision   bigint not null,
        position   text not null,
        type       text not null,
        primary key (stream, revision)
      );
      create unique index account_events_places on account_events (account_id, place);
    `);
  },
};
