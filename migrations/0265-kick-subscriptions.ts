import type { Migration } from './index';

/**
 * The ids of a channel's subscriptions at Kick, as far as they were made with the app of this grant. Null: not known,
 * since they were never asked for or are being made now.
 */
export const kickSubscriptions: Migration = {
  name: '0265-kick-subscriptions',
  up: (knex) => knex.raw('alter table connection_grants add column subscriptions text[]'),
};
