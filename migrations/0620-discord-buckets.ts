import type { Migration } from './index';

/** Rate limits of Discord's REST, shared by all processes. */
export const discordBuckets: Migration = {
  name: '0620-discord-buckets',
  up: (knex) =>
    knex.raw(`
      create table discord_routes (
        route  text primary key,
        bucket text not null
      );
      create table discord_buckets (
        key       text primary key,
        most      integer not null,
        remaining integer not null,
        resets_at timestamptz not null,
        window_ms integer not null,
        in_flight integer not null,
        taken_at  timestamptz not null,
        learned   boolean not null default false
      );
      create index discord_buckets_reset on discord_buckets (resets_at)`),
};
