import type { Migration } from './index';

/** Accounts at platforms by which a user logged in once: an erasure of the user reaches them, too. */
export const formerLogins: Migration = {
  name: '0580-former-logins',
  up: (knex) =>
    knex.raw(`
      create table former_logins (
        user_id             uuid not null,
        provider            text not null,
        provider_account_id text not null,
        ended_at            timestamptz not null default clock_timestamp(),
        primary key (user_id, provider, provider_account_id)
      );
      create index former_logins_account on former_logins (provider, provider_account_id)`),
};
