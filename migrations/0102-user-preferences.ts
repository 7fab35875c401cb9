import type { Migration } from './index';

/** Dashboard preferences of people; a person without changes has no row. */
export const userPreferences: Migration = {
  name: '0102-user-preferences',
  async up(knex) {
    await knex.raw(`
      create table user_preferences (
        user_id            uuid primary key,
        streamer_mode      boolean not null,
        extension_dev_mode boolean not null,
        set_at             timestamptz not null
      );
    `);
  },
};
