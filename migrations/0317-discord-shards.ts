import type { Migration } from './index';

/** Number of shards of Discord's gateway over which the bot's servers are divided: one row, which only grows. */
export const discordShards: Migration = {
  name: '0317-discord-shards',
  up: (knex) =>
    knex.raw(`
      create table discord_shards (
        one    boolean primary key default true check (one),
        shards int not null check (shards > 0)
      )`),
};
