import type { Migration } from './index';

/** Keys that expire: their data has no subject who could request an erasure. Design §5. */
export const subjectKeyExpiry: Migration = {
  name: '0030-subject-key-expiry',
  async up(knex) {
    await knex.raw(`
      alter table subject_keys add column expires_at timestamptz;
      create index subject_keys_expiry on subject_keys (expires_at) where expires_at is not null;
    `);
  },
};
