import type { Migration } from './index';

/**
 * Logins of people, and the providers' data about them, with sealed tokens. The latter is not a read model, because no
 * event carries it: a row is deleted with its login, or with the erasure of its person.
 */
export const loginConnections: Migration = {
  name: '0086-login-connections',
  up: (knex) =>
    knex.raw(`
      create table login_connections (
        id                 uuid primary key,
        user_id            uuid not null,
        provider           text not null,
        reconnect_required boolean not null default false,
        connected_at       timestamptz not null
      );
      create index login_connections_user_idx on login_connections (user_id, connected_at, id);
      create table login_grants (
        login_connection_id uuid primary key,
        user_id             uuid not null,
        provider_account_id text not null,
        username            text,
        display_name        text,
        avatar_url          text,
        scopes              text[] not null,
        token_expires_at    timestamptz,
        sealed              text not null,
        updated_at          timestamptz not null default clock_timestamp()
      );
      create index login_grants_user_idx on login_grants (user_id)`),
};
