import type { Migration } from './index';

/**
 * Names and pictures of people. Not a read model, because no event carries them: the table is backed up, never rebuilt,
 * and a row is deleted with the erasure of its person. Filled once, from the present read model and, for rows missing
 * there (a restored backup has no read models yet), from the events of the previous release. `users` keeps its two
 * columns, empty, for running processes of that release.
 */
export const profiles: Migration = {
  name: '0021-profiles',
  async up(knex) {
    await knex.raw(`
      create table profiles (
        user_id      uuid primary key,
        display_name text not null,
        avatar_url   text,
        updated_at   timestamptz not null default clock_timestamp()
      );
      insert into profiles (user_id, display_name, avatar_url)
        select id, display_name, avatar_url from users;
      insert into profiles (user_id, display_name, avatar_url)
        select (data->>'user_id')::uuid, data->>'display_name', data->>'avatar_url' from domain_events
        -- The bounds let the index of streams answer; in their bytes a full stop follows the hyphen.
        where stream >= 'user-' and stream < 'user.' and type = 'user:registered' and data->>'display_name' is not null
        on conflict (user_id) do nothing;
      alter table users alter column display_name drop not null;
      update users set display_name = null, avatar_url = null;
    `);
  },
};
