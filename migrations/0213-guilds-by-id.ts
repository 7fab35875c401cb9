import type { Migration } from './index';

/** Operators find a Discord server by its id. */
export const guildsById: Migration = {
  name: '0213-guilds-by-id',
  up: (knex) => knex.raw('create index bot_connections_user_idx on bot_connections (platform, platform_user_id)'),
};
