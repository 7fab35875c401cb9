import type { Migration } from './index';

/**
 * A projection that is driven for the first time is built silently: `silent_to` is the end that its source had then,
 * and nothing up to there is announced; `built` says that it was passed. A letter that was parked silently is retried
 * so. Decision 0014.
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
