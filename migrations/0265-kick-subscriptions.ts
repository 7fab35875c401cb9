import type { Migration } from './index';

/**
 * Ids of a channel's subscriptions at Kick that were made with the app of this grant. Null: unknown, because they were
 * never requested or are being made now.
 */
export const kickSubscriptions: Migration = {
  name: '0265-kick-subscriptions',
  up: (knex) => knex.raw('alter table connection_grants add column subscriptions text[]'),
};
