import type { Migration } from './index';

/** Notes of moderators about people of an account's chats, written only by the projection `person-notes`. */
export const platformUserNotes: Migration = {
  name: '0437-platform-user-notes',
  up: (knex) =>
    knex.raw(`
      create table platform_user_notes (
        id               uuid primary key,
        account_id       uuid not null,
        platform         text not null,
        platform_user_id text not null,
        text             text not null,
        created_by       uuid,
        created_at       timestamptz not null,
        updated_at       timestamptz not null
      );
      create index platform_user_notes_person
        on platform_user_notes (platform_user_id, platform, account_id, created_at desc)`),
};
