import type { Migration } from './index';

/**
 * Moment until which the former holder of a link reads on, and the token under which it announced that: the previous
 * release writes `given_away_at` alone.
 */
export const linkHandovers: Migration = {
  name: '0285-link-handovers',
  up: (knex) =>
    knex.raw('alter table adapter_links add column reads_on_until timestamptz, add column reads_on_token bigint'),
};
