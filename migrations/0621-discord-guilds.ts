import type { Migration } from './index';

/** The read model of Discord servers: what accounts have configured, and the commands that Discord does not take. */
export const discordGuilds: Migration = {
  name: '0621-discord-guilds',
  up: (knex) =>
    knex.raw(`
      create table discord_guilds (
        connection_id uuid primary key,
        account_id    uuid not null,
        guild_id      text not null,
        settings      jsonb not null default '{}'
      );
      create index discord_guilds_account on discord_guilds (account_id);
      create table discord_guild_channels (
        connection_id uuid not null,
        account_id    uuid not null,
        feature       text not null,
        channel_id    text not null,
        primary key (connection_id, feature)
      );
      create index discord_guild_channels_feature on discord_guild_channels (account_id, feature);
      create table discord_slash_commands (
        connection_id uuid primary key,
        account_id    uuid not null,
        skipped       text[] not null
      )`),
};
