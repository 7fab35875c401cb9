import type { Migration } from './index';

/**
 * Holders of work for a single process. Rows are never deleted, because a token must never be used twice. Design §9.
 */
export const leases: Migration = {
  name: '0010-leases',
  async up(knex) {
    await knex.raw(`
      create table leases (
        name       text primary key,
        holder     text not null,
        -- Greater with each new holder; effects are fenced by it.
        token      bigint not null,
        expires_at timestamptz not null
      );
    `);
  },
};
