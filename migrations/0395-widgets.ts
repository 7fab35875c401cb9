import type { Migration } from './index';

/** Widgets of accounts, and what single members may do with them. */
export const widgets: Migration = {
  name: '0395-widgets',
  up: (knex) =>
    knex.raw(`
      create table widgets (
        id          uuid primary key,
        account_id  uuid not null,
        widget_type text not null,
        name        text not null,
        config      jsonb not null,
        revision    bigint not null,
        created_by  uuid,
        created_at  timestamptz not null,
        updated_at  timestamptz not null
      );
      create index widgets_account on widgets (account_id, created_at desc, id);

      create table widget_access (
        id         uuid not null,
        widget_id  uuid not null,
        account_id uuid not null,
        user_id    uuid not null,
        role       text not null,
        granted_by uuid,
        created_at timestamptz not null,
        primary key (widget_id, user_id)
      );
      create index widget_access_account on widget_access (account_id, user_id)`),
};
