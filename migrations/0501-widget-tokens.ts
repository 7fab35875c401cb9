import type { Migration } from './index';

/** Tokens of the pages of widgets. */
export const widgetTokens: Migration = {
  name: '0501-widget-tokens',
  up: (knex) =>
    knex.raw(`
      create table widget_tokens (
        id             uuid primary key,
        kind           text not null default 'widget',
        token_hash     text not null unique,
        account_id     uuid not null,
        widget_id      uuid not null,
        channel        text not null,
        install_grants text[] not null default '{}',
        created_at     timestamptz not null,
        expires_at     timestamptz
      );
      create index widget_tokens_widget on widget_tokens (widget_id);
      create index widget_tokens_account on widget_tokens (account_id)`),
};
