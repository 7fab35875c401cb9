import type { Migration } from './index';

/**
 * Bots of channels, the installation's own apps and bots, tip tokens, and the tokens of all of them. Tokens are not a
 * read model, because no event carries them: those of a connection are sealed under the key of its person or channel,
 * so that an erasure covers them.
 */
export const connections: Migration = {
  name: '0140-connections',
  up: (knex) =>
    knex.raw(`
      alter table channel_connections
        add column reconnect_required boolean not null default false,
        add column bot_enabled boolean not null default true,
        add column since timestamptz not null default clock_timestamp();
      create table bot_connections (
        id                 uuid primary key,
        account_id         uuid not null,
        platform           text not null,
        platform_user_id   text not null,
        reconnect_required boolean not null default false,
        connected_at       timestamptz not null,
        since              timestamptz not null,
        unique (account_id, platform)
      );
      create table system_connections (
        platform           text primary key,
        client_id          text,
        channel_mode       text not null default 'system',
        bot_mode           text not null default 'system',
        bot_connection_id  uuid,
        bot_user_id        text,
        reconnect_required boolean not null default false,
        bot_connected_at   timestamptz
      );
      create table se_tokens (
        id         uuid primary key,
        account_id uuid not null,
        platform   text not null,
        label      text not null,
        created_at timestamptz not null,
        saved_at   timestamptz not null,
        unique (account_id, platform)
      );
      create table se_token_secrets (
        token_id uuid primary key,
        sealed   text not null,
        refused  boolean not null default false,
        saved_at timestamptz not null default clock_timestamp()
      );
      create table connection_grants (
        connection_id    uuid primary key,
        account_id       uuid,
        kind             text not null,
        platform         text not null,
        platform_user_id text not null,
        app              text not null,
        client_id        text not null,
        scopes           text[] not null,
        expires_at       timestamptz,
        key_id           uuid not null,
        sealed           text not null,
        generation       bigint not null default 1,
        stored_at        timestamptz not null default clock_timestamp(),
        after_refusal    boolean not null default false,
        refreshing       uuid,
        refreshing_until timestamptz,
        dead             boolean not null default false
      );
      create index connection_grants_account_idx on connection_grants (account_id);
      create index connection_grants_person_idx on connection_grants (platform, platform_user_id);
      create table app_secrets (
        id        text primary key,
        client_id text not null,
        sealed    text not null,
        set_at    timestamptz not null default clock_timestamp()
      );
      create table oauth_states (
        state_hash    text primary key,
        user_id       uuid not null,
        account_id    uuid,
        platform      text not null,
        kind          text not null,
        app           text not null,
        client_id     text not null,
        return_to     text not null,
        sealed        text not null,
        expires_at    timestamptz not null,
        used_by       text,
        connection_id uuid,
        created_at    timestamptz not null default clock_timestamp()
      );
      create index oauth_states_user_idx on oauth_states (user_id, created_at);
      create index oauth_states_expiry_idx on oauth_states (expires_at)`),
};
