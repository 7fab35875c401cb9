import type { Migration } from './index';

/**
 * What operators see of users, and what a deletion finds: the accounts that people are members of, and who was deleted,
 * as the reactor `users` remembers them in the order of the log; written with its checkpoint.
 */
export const deletedUsers: Migration = {
  name: '0103-deleted-users',
  async up(knex) {
    await knex.raw(`
      alter table users add column last_login_at timestamptz;
      create index users_newest on users (created_at desc, id desc);
      create index accounts_newest on accounts (created_at desc, id desc);
      create table memberships_to_end (
        user_id    uuid not null,
        account_id uuid not null,
        primary key (user_id, account_id)
      );
      create index memberships_to_end_account on memberships_to_end (account_id);
      create table deleted_users (
        user_id    uuid primary key,
        deleted_at timestamptz not null
      );
    `);
  },
};
