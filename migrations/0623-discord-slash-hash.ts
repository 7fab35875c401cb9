import type { Migration } from './index';

/** Commands that a Discord server was last given, as a hash. */
export const discordSlashHash: Migration = {
  name: '0623-discord-slash-hash',
  up: (knex) => knex.raw(`alter table discord_slash_commands add column hash text not null default ''`),
};
