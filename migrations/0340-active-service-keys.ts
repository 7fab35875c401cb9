import type { Migration } from './index';

/** Active service keys and the key that made each, as stored by the reactor `service-keys` with its checkpoint. */
export const activeServiceKeys: Migration = {
  name: '0340-active-service-keys',
  up: (knex) =>
    knex.raw(`
      create table active_service_keys (
        key_id     uuid primary key,
        account_id uuid not null,
        made_with  uuid
      );
      create index active_service_keys_made on active_service_keys (made_with) where made_with is not null;
      create index active_service_keys_account on active_service_keys (account_id)`),
};
