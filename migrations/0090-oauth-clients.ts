import type { Migration } from './index';

/** OAuth clients, a read model; and, without events, issued codes and the state of active grants. */
export const oauthClients: Migration = {
  name: '0090-oauth-clients',
  up: (knex) =>
    knex.raw(`
      create table oauth_clients (
        client_id     uuid primary key,
        name          text not null,
        client_type   text not null,
        account_id    uuid,
        redirect_uris text[] not null,
        scopes        text[] not null,
        grant_types   text[] not null,
        enabled       boolean not null,
        secret_hash   text,
        created_at    timestamptz not null,
        updated_at    timestamptz not null
      );
      create index oauth_clients_newest on oauth_clients (created_at desc, client_id desc);

      create table oauth_codes (
        code_hash      text primary key,
        grant_id       uuid not null,
        client_id      uuid not null,
        user_id        uuid not null,
        account_id     uuid not null,
        session_id     uuid not null,
        redirect_uri   text not null,
        scopes         text[] not null,
        code_challenge text not null,
        expires_at     timestamptz not null,
        -- A code that comes twice ends what it gave, as long as that lives.
        used_at        timestamptz,
        grant_ends_at  timestamptz not null
      );
      create index oauth_codes_kept on oauth_codes ((case when used_at is null then expires_at else grant_ends_at end));

      create table oauth_grants (
        id               uuid primary key,
        client_id        uuid not null,
        user_id          uuid not null,
        account_id       uuid not null,
        session_id       uuid not null,
        scopes           text[] not null,
        -- Null: the client gets no refresh tokens.
        refresh_jti_hash text,
        begun_at         timestamptz not null,
        refreshed_at     timestamptz not null,
        expires_at       timestamptz not null
      );
      create index oauth_grants_client on oauth_grants (client_id);
      create index oauth_grants_expiry on oauth_grants (expires_at)`),
};
