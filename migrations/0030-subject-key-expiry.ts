import type { Migration } from './index';

/** Keys that destroy themselves: what they seal belongs to nobody whose erasure could be asked for. Design §5. */
export const subjectKeyExpiry: Migration = {
  name: '0030-subject-key-expiry',
  async up(knex) {
    await knex.raw(`
      alter table subject_keys add column expires_at timestamptz;
      create index subject_keys_expiry on subject_keys (expires_at) where expires_at is not null;
    `);
  },
};
