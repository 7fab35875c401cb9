import type { Migration } from './index';

/** Counts, at each checkpoint, the erasures that refuse batches decoded before them. */
export const checkpointErasures: Migration = {
  name: '0296-checkpoint-erasures',
  up: (knex) => knex.raw('alter table checkpoints add column erasures bigint not null default 0'),
};
