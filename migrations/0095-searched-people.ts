import type { Migration } from './index';

/** Search of people by the beginnings of their names; the responsible reactor stores where their logins are used. */
export const searchedPeople: Migration = {
  name: '0095-searched-people',
  async up(knex) {
    await knex.raw(`
      create index profiles_name on profiles (lower(display_name) text_pattern_ops);
      create index login_grants_username on login_grants (lower(username) text_pattern_ops) where username is not null;
      create table login_places (
        login_connection_id uuid not null,
        account_id          uuid not null,
        primary key (login_connection_id, account_id)
      );
      create index login_places_account on login_places (account_id);
    `);
  },
};
