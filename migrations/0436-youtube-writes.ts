import type { Migration } from './index';

/** Units of the day's quota of YouTube that calls besides reading have used; they are part of `used`. */
export const youtubeWrites: Migration = {
  name: '0436-youtube-writes',
  up: (knex) => knex.raw('alter table youtube_quota add column written bigint not null default 0'),
};
