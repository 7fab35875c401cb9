import type { Migration } from './index';

/**
 * Details of people of the chats that were fetched from their platforms; no rebuild touches them. `person_key` as in
 * `platform_users`. `platform_user_refreshes`
 * holds the cooldowns of refreshes that were asked for.
 */
export const platformUserDetails: Migration = {
  name: '0391-platform-user-details',
  up: (knex) =>
    knex.raw(`
      create table platform_user_details (
        account_id         uuid not null,
        person_key         uuid not null,
        avatar_url         text,
        description        text,
        account_created_at timestamptz,
        broadcaster_type   text,
        is_follower        boolean,
        followed_at        timestamptz,
        enriched_at        timestamptz,
        tried_at           timestamptz not null,
        primary key (account_id, person_key)
      );
      create index platform_user_details_person on platform_user_details (person_key);
      create index platform_users_person on platform_users (person_key);

      create table platform_user_refreshes (
        account_id   uuid not null,
        person_key   uuid not null,
        refreshed_at timestamptz not null,
        primary key (account_id, person_key)
      );
      create index platform_user_refreshes_at on platform_user_refreshes (refreshed_at)`),
};
