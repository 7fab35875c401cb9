import type { Migration } from './index';

/** Finds the parked events of a reactor's lane: of an account, or of a stream that belongs to no account. */
export const reactorLanes: Migration = {
  name: '0295-reactor-lanes',
  up: (knex) =>
    knex.raw(`
      create index dead_letters_lanes on dead_letters (projection, (coalesce(nullif(account_id, 'global'), stream)), id)
        where status = 'parked'`),
};
