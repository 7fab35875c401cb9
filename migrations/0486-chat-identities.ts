import type { Migration } from './index';

/**
 * Persons of chats by the keyed hash that events of logins hold (`services/identity/identities.ts`), so that a user's
 * earlier logins are found. `user_channels` has the hashes of channels that a user's logins with Google named.
 */
export const chatIdentities: Migration = {
  name: '0486-chat-identities',
  up: (knex) =>
    knex.raw(`
      alter table platform_users add column identity_hash text;
      create index platform_users_identity on platform_users (identity_hash) where identity_hash is not null;
      create index platform_users_unhashed on platform_users (account_id, person_key)
        where identity_hash is null and platform_user_id is not null;

      create table user_channels (
        user_id             uuid not null,
        identity_hash       text not null,
        login_connection_id uuid not null,
        kept_at             timestamptz not null default clock_timestamp(),
        primary key (user_id, identity_hash)
      );
      create index user_channels_login on user_channels (login_connection_id, kept_at)`),
};
