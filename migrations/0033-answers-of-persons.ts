import type { Migration } from './index';

/** Whose answers are kept for `Idempotency-Key`, so that they go with the person. */
export const answersOfPersons: Migration = {
  name: '0033-answers-of-persons',
  async up(knex) {
    await knex.raw(`
      alter table idempotency_keys add column user_id text;
      create index idempotency_keys_user on idempotency_keys (user_id) where user_id is not null;
    `);
  },
};
