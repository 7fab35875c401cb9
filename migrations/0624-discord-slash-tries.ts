import type { Migration } from './index';

/** Time of the last try to register the commands of a Discord server. */
export const discordSlashTries: Migration = {
  name: '0624-discord-slash-tries',
  up: (knex) => knex.raw('alter table discord_slash_commands add column tried_at timestamptz'),
};
