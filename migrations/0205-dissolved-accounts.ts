import type { Migration } from './index';

/** Dissolved accounts, as the reactor `accounts` stores them in the order of the log. */
export const dissolvedAccounts: Migration = {
  name: '0205-dissolved-accounts',
  up: (knex) => knex.raw('create table dissolved_accounts (account_id uuid primary key)'),
};
