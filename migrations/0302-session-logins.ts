import type { Migration } from './index';

/** The login that opened a session; null for sessions of operators and of earlier releases. */
export const sessionLogins: Migration = {
  name: '0302-session-logins',
  up: (knex) =>
    knex.raw(`
      alter table sessions add column login_connection_id uuid;
      create index sessions_login_idx on sessions (login_connection_id) where login_connection_id is not null`),
};
