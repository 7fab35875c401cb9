import type { Migration } from './index';

/**
 * State of a link that is not completely open yet. A column of its own, because earlier releases read `state` alone and
 * treat it as complete.
 */
export const linkBeginnings: Migration = {
  name: '0270-link-beginnings',
  up: (knex) => knex.raw('alter table adapter_links add column beginning jsonb, add column beginning_token bigint'),
};
