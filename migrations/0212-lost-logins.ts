import type { Migration } from './index';

/** Which logins were taken away, and whose, as the reactor `login-assignments` remembers it in the order of the log. */
export const lostLogins: Migration = {
  name: '0212-lost-logins',
  up: (knex) => knex.raw('create table lost_logins (login_connection_id uuid primary key, user_id uuid not null)'),
};
