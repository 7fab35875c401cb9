import type { Migration } from './index';

/** All tokens of an account are ended together. */
export const boundTokensOfAccounts: Migration = {
  name: '0081-bound-tokens-of-accounts',
  up: (knex) => knex.raw('create index bound_tokens_account on bound_tokens (account_id, resource_id)'),
};
