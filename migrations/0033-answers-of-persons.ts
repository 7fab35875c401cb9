import type { Migration } from './index';

/** User of each answer kept for `Idempotency-Key`, so that the answers are erased with the person. */
export const answersOfPersons: Migration = {
  name: '0033-answers-of-persons',
  async up(knex) {
    await knex.raw(`
      alter table idempotency_keys add column user_id text;
      create index idempotency_keys_user on idempotency_keys (user_id) where user_id is not null;
    `);
  },
};
