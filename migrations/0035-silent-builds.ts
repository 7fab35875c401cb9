import type { Migration } from './index';

/**
 * A projection is built silently at its first start: `silent_to` is the end of its source at that time, and nothing up
 * to there is announced; `built` is true after that end. A silently parked letter is retried silently. Decision 0014.
 */
export const silentBuilds: Migration = {
  name: '0035-silent-builds',
  async up(knex) {
    await knex.raw(`
      alter table checkpoints add column silent_to text, add column built boolean not null default true;
      alter table dead_letters add column silent boolean not null default false;
    `);
  },
};
