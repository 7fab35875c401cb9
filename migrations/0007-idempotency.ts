import type { Migration } from './index';

/**
 * Answers kept for `Idempotency-Key`. `id` is a hash of caller, route and key; the key itself is nowhere, and the
 * answer is encrypted under a key derived from it, so the table alone reveals neither. Design §5.
 */
export const idempotency: Migration = {
  name: '0007-idempotency',
  async up(knex) {
    await knex.raw(`
      create table idempotency_keys (
        id           bytea primary key,
        request_hash bytea not null,
        seed         bytea not null,
        answer       bytea,
        created_at   timestamptz not null default now(),
        locked_until timestamptz not null
      );
      create index idempotency_keys_created_at on idempotency_keys (created_at);
    `);
  },
};
