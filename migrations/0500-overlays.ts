import type { Migration } from './index';

/** Overlays with their layers, folders, links and access entries, and the tokens of pages. */
export const overlays: Migration = {
  name: '0500-overlays',
  up: (knex) =>
    knex.raw(`
      create table overlays (
        id         uuid primary key,
        account_id uuid not null,
        folder_id  uuid,
        name       text not null,
        key        text not null unique,
        width      integer not null,
        height     integer not null,
        background text not null,
        revision   bigint not null,
        created_at timestamptz not null,
        updated_at timestamptz not null
      );
      create index overlays_account on overlays (account_id, created_at, id);

      create table overlay_layers (
        overlay_id uuid not null,
        id         uuid not null,
        type       text not null,
        name       text not null,
        config     jsonb not null,
        visible    boolean not null,
        sort_order integer not null,
        locked     boolean not null,
        primary key (overlay_id, id)
      );

      create table overlay_folders (
        id         uuid primary key,
        account_id uuid not null,
        parent_id  uuid,
        name       text not null,
        created_at timestamptz not null
      );
      create index overlay_folders_account on overlay_folders (account_id, created_at, id);

      create table overlay_access (
        id         uuid not null,
        overlay_id uuid not null,
        account_id uuid not null,
        user_id    uuid not null,
        role       text not null,
        granted_by uuid,
        created_at timestamptz not null,
        primary key (overlay_id, user_id)
      );
      create index overlay_access_account on overlay_access (account_id, user_id);

      create table overlay_tokens (
        id             uuid primary key,
        kind           text not null check (kind in ('overlay', 'shared_overlay')),
        token_hash     text not null unique,
        account_id     uuid not null,
        resource_id    uuid not null,
        channel        text not null,
        install_grants text[] not null default '{}',
        is_listed      boolean not null,
        created_at     timestamptz not null,
        expires_at     timestamptz
      );
      create index overlay_tokens_resource on overlay_tokens (resource_id);
      create index overlay_tokens_account on overlay_tokens (account_id)`),
};
