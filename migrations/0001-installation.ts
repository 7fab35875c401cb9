import type { Migration } from './index';

/**
 * Facts of this one database: its identity (positions belong to it) and the realtime epoch (changes after a restore).
 */
export const installation: Migration = {
  name: '0001-installation',
  async up(knex) {
    await knex.raw(`
      create table installation (
        name  text primary key,
        value text not null
      );
      insert into installation (name, value)
      values ('id', gen_random_uuid()::text), ('epoch', substr(md5(gen_random_uuid()::text), 1, 8));
    `);
  },
};
