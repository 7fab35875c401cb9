import type { Migration } from './index';

/** Keys to revoke with a membership, as stored by the reactor `api-keys`; written with its checkpoint. */
export const memberKeys: Migration = {
  name: '0045-member-keys',
  async up(knex) {
    await knex.raw(`
      create table member_keys (
        key_id     uuid primary key,
        account_id uuid not null,
        user_id    uuid not null
      );
      create index member_keys_member on member_keys (account_id, user_id);
    `);
  },
};
