import type { Migration } from './index';

/** Surplus codes and grants of one user and client are found by both. */
export const oauthByUser: Migration = {
  name: '0303-oauth-by-user',
  up: (knex) =>
    knex.raw(`
      create index oauth_codes_user_idx on oauth_codes (user_id, client_id, expires_at);
      create index oauth_grants_user_idx on oauth_grants (user_id, client_id, refreshed_at)`),
};
