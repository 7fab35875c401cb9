import type { Migration } from './index';

/** Validates the constraint that 0042 relies on while rows are read and written, so that 0042 scans no old rows. */
export const ledgerBound: Migration = {
  name: '0041-ledger-bound',
  async up(knex) {
    await knex.raw('alter table ingested_ids validate constraint ledger_before_bound');
  },
};
