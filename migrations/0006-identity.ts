import type { Migration } from './index';

/**
 * Users, accounts and their credentials. Rows of the read models (users … system_keys) come from domain events and can
 * be rebuilt, so nothing refers to them by foreign key; sessions, ws tokens, uses, secrets and signing keys are state
 * of their own.
 */
export const identity: Migration = {
  name: '0006-identity',
  async up(knex) {
    await knex.raw(`
      create table users (
        id           uuid primary key,
        display_name text not null,
        avatar_url   text,
        created_at   timestamptz not null
      );
      create table user_admin_roles (
        user_id     uuid not null,
        role        text not null,
        assigned_at timestamptz not null,
        primary key (user_id, role)
      );

      create table accounts (
        id         uuid primary key,
        name       text not null,
        owner_id   uuid not null,
        created_at timestamptz not null
      );
      create table account_roles (
        id          uuid primary key,
        account_id  uuid not null,
        slug        text not null,
        name        text not null,
        position    integer not null,
        is_system   boolean not null,
        permissions text[] not null
      );
      create index account_roles_account_idx on account_roles (account_id);
      create table account_members (
        account_id uuid not null,
        user_id    uuid not null,
        id         uuid not null,
        role_id    uuid not null,
        joined_at  timestamptz not null,
        primary key (account_id, user_id)
      );
      create index account_members_user_idx on account_members (user_id);
      create table account_feature_overrides (
        account_id uuid not null,
        flag       text not null,
        enabled    boolean not null,
        set_at     timestamptz not null,
        primary key (account_id, flag)
      );
      create table feature_flags (
        key        text primary key,
        enabled    boolean not null,
        changed_at timestamptz not null
      );

      create table channel_connections (
        id                  uuid primary key,
        account_id          uuid not null,
        platform            text not null,
        platform_channel_id text not null,
        channel_name        text not null,
        connected_at        timestamptz not null,
        unique (account_id, platform)
      );
      create index channel_connections_channel_idx on channel_connections (platform, platform_channel_id);
      create table shop_connections (
        id           uuid primary key,
        account_id   uuid not null,
        shop_domain  text not null unique,
        connected_at timestamptz not null
      );
      create index shop_connections_account_idx on shop_connections (account_id);
      -- Sealed under the master keys; written before the event that makes the connection, so that no connection is ever without.
      create table connection_secrets (
        connection_id uuid primary key,
        sealed        text not null,
        changed_at    timestamptz not null default now()
      );

      create table api_keys (
        id          uuid primary key,
        account_id  uuid not null,
        user_id     uuid not null,
        key_hash    text not null unique,
        key_prefix  text not null,
        label       text not null,
        permissions text[] not null,
        created_at  timestamptz not null,
        expires_at  timestamptz
      );
      create index api_keys_owner_idx on api_keys (account_id, user_id);
      create table system_keys (
        id          uuid primary key,
        key_hash    text not null unique,
        key_prefix  text not null,
        label       text not null,
        permissions text[] not null,
        created_at  timestamptz not null
      );
      -- Apart from the keys, since uses are no events: a rebuild keeps them.
      create table credential_uses (
        credential_id text primary key,
        last_used_at  timestamptz not null
      );

      create table sessions (
        id                uuid primary key,
        user_id           uuid not null,
        refresh_jti_hash  text not null unique,
        created_at        timestamptz not null,
        refreshed_at      timestamptz not null,
        expires_at        timestamptz not null
      );
      create index sessions_user_idx on sessions (user_id);
      create index sessions_expiry_idx on sessions (expires_at);
      -- What minted each WebSocket token: the token lives no longer than its parent.
      create table ws_tokens (
        jti_hash    text primary key,
        parent_kind text not null,
        parent_id   text not null,
        expires_at  timestamptz not null
      );
      create index ws_tokens_expiry_idx on ws_tokens (expires_at);
      create table signing_keys (
        kid            text primary key,
        public_jwk     jsonb not null,
        private_sealed text not null,
        created_at     timestamptz not null default now()
      );

      -- The durable tail that every node follows to forget credentials and close sockets; trimmed by age.
      create table revocations (
        id            bigint generated always as identity primary key,
        credential_id text,
        user_id       text,
        account_id    text,
        recorded_at   timestamptz not null default clock_timestamp()
      );
      create index revocations_age_idx on revocations (recorded_at);
      create index revocations_credential_idx on revocations (credential_id) where credential_id is not null;
    `);
  },
};
