import type { Migration } from './index';

/**
 * Keys of accounts, popout tokens, and the tokens of one overlay, widget or install. The first two are read models; the
 * last are state of their own, minted and revoked by the areas of their resources.
 */
export const keysAndTokens: Migration = {
  name: '0080-keys-and-tokens',
  up: (knex) =>
    knex.raw(`
      create table service_keys (
        id          uuid primary key,
        account_id  uuid not null,
        created_by  uuid,
        key_hash    text not null unique,
        key_prefix  text not null,
        label       text not null,
        permissions text[] not null,
        created_at  timestamptz not null,
        updated_at  timestamptz not null,
        expires_at  timestamptz
      );
      create index service_keys_account on service_keys (account_id, created_at desc, id desc);

      create table popout_tokens (
        id           uuid primary key,
        account_id   uuid not null,
        user_id      uuid,
        created_by   uuid not null,
        token_hash   text not null unique,
        token_prefix text not null,
        label        text,
        permissions  text[] not null,
        created_at   timestamptz not null,
        expires_at   timestamptz,
        revoked_at   timestamptz
      );
      create index popout_tokens_account on popout_tokens (account_id, created_at desc, id desc);

      create table bound_tokens (
        id             uuid primary key,
        kind           text not null check (kind in ('overlay', 'shared_overlay', 'extension', 'widget')),
        token_hash     text not null unique,
        account_id     uuid not null,
        resource_id    uuid not null,
        channel        text not null,
        extension_id   uuid,
        install_grants text[] not null default '{}',
        created_at     timestamptz not null default now(),
        expires_at     timestamptz
      );
      create index bound_tokens_resource on bound_tokens (resource_id);
      create index bound_tokens_expiry on bound_tokens (expires_at) where expires_at is not null;

      -- As the reactor of popout tokens remembers them; written with its checkpoint.
      create table member_tokens (
        token_id   uuid not null,
        account_id uuid not null,
        user_id    uuid not null,
        primary key (token_id, user_id)
      );
      create index member_tokens_member on member_tokens (account_id, user_id);
    `),
};
