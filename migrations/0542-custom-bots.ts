import type { Migration } from './index';

/** Accounts for which an operator has decided whether they may have bots of their own. */
export const customBots: Migration = {
  name: '0542-custom-bots',
  up: (knex) =>
    knex.raw(`
      create table custom_bot_overrides (
        account_id uuid primary key,
        allowed    boolean not null
      )`),
};
