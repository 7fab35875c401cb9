import type { Migration } from './index';

/** An import of keys searches each of them among the erased ones. */
export const erasedKeysById: Migration = {
  name: '0231-erased-keys-by-id',
  up: (knex) => knex.raw('create index subject_key_erasures_key_id on subject_key_erasures (key_id)'),
};
