import type { Migration } from './index';

/** Removed logins and their users, as the reactor `login-assignments` stores them in the order of the log. */
export const lostLogins: Migration = {
  name: '0212-lost-logins',
  up: (knex) => knex.raw('create table lost_logins (login_connection_id uuid primary key, user_id uuid not null)'),
};
