import type { Migration } from './index';

/**
 * Proves what 0042 says of the rows from before, while they are read and written: that step then looks at none of them.
 */
export const ledgerBound: Migration = {
  name: '0041-ledger-bound',
  async up(knex) {
    await knex.raw('alter table ingested_ids validate constraint ledger_before_bound');
  },
};
