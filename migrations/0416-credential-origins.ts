import type { Migration } from './index';

/**
 * The session, and the login that opened it, in which a personal key or popout token was made; a removed login ends
 * them. Credentials of earlier releases have no row. The login is null for sessions of earlier releases.
 */
export const credentialOrigins: Migration = {
  name: '0416-credential-origins',
  up: (knex) =>
    knex.raw(`
      create table credential_origins (
        credential_id       uuid primary key,
        kind                text not null check (kind in ('api_key', 'popout_token')),
        account_id          uuid not null,
        user_id             uuid not null,
        session_id          uuid not null,
        login_connection_id uuid
      );
      create index credential_origins_user on credential_origins (user_id);
      create index credential_origins_account on credential_origins (account_id)`),
};
