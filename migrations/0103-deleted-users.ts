import type { Migration } from './index';

/**
 * User facts for operators, and for a deletion: memberships of people in accounts, and deleted users. The reactor
 * `users` writes these in the order of the log, together with its checkpoint.
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
