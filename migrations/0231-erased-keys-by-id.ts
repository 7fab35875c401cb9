import type { Migration } from './index';

/** An import of keys looks each of them up among those that were erased. */
export const erasedKeysById: Migration = {
  name: '0231-erased-keys-by-id',
  up: (knex) => knex.raw('create index subject_key_erasures_key_id on subject_key_erasures (key_id)'),
};
