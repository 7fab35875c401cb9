import type { Migration } from './index';

/** Posts in Discord by their causes: one cause makes one post. */
export const discordPosts: Migration = {
  name: '0622-discord-posts',
  up: (knex) =>
    knex.raw(`
      create table discord_posts (
        account_id uuid not null,
        id         uuid not null,
        status     text not null default 'asked' check (status in ('asked', 'sent', 'refused', 'unknown')),
        message_id text,
        asked_at   timestamptz not null default clock_timestamp(),
        primary key (account_id, id)
      );
      create index discord_posts_asked on discord_posts (asked_at)`),
};
