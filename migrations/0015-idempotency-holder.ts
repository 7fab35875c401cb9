import type { Migration } from './index';

/**
 * Holder of an idempotency key: the advisory lock of its process, free when the process is dead. Null where the process
 * had no such lock; then the key is held until `locked_until`, as in earlier releases.
 */
export const idempotencyHolder: Migration = {
  name: '0015-idempotency-holder',
  async up(knex) {
    await knex.raw('alter table idempotency_keys add column holder bigint');
  },
};
