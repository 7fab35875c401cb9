import type { Migration } from './index';

/**
 * A key signs from a time at which every node has read it, and verifies until the last token that it signed has ended
 * (null: it has no successor).
 */
export const signingKeyRotation: Migration = {
  name: '0087-signing-key-rotation',
  up: (knex) =>
    knex.raw(`
      alter table signing_keys add column signs_from timestamptz, add column verifies_until timestamptz;
      update signing_keys set signs_from = created_at;
      alter table signing_keys alter column signs_from set default now(), alter column signs_from set not null`),
};
