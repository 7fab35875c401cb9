import type { Migration } from './index';

/**
 * Whose request holds an idempotency key: the advisory lock of its process, free when the process is dead. Null where
 * the process could not show itself to live; then the key is held until `locked_until`, as it was before.
 */
export const idempotencyHolder: Migration = {
  name: '0015-idempotency-holder',
  async up(knex) {
    await knex.raw('alter table idempotency_keys add column holder bigint');
  },
};
