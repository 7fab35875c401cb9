import type { Migration } from './index';

/**
 * Details of people have two ages: `enriched_at` of pictures, follows and subscriptions, `details_at` of the rest. No
 * platform is called about a person before `fetch_after`. `unknown_user_refreshes` holds the cooldowns of refreshes of
 * people whom the account's chats do not know, by their keyed hash.
 */
export const profileAges: Migration = {
  name: '0475-profile-ages',
  up: (knex) =>
    knex.raw(`
      alter table platform_user_details
        add column details_at timestamptz,
        add column fetch_after timestamptz,
        add column is_subscriber boolean;

      create table unknown_user_refreshes (
        account_id   uuid not null,
        person_hash  text not null,
        refreshed_at timestamptz not null,
        primary key (account_id, person_hash)
      );
      create index unknown_user_refreshes_at on unknown_user_refreshes (refreshed_at)`),
};
