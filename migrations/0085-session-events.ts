import type { Migration } from './index';

/**
 * Sessions become events, and `user_sessions` their read model. `sessions` keeps the active sessions and the current
 * refresh token of each: a rebuild does not change it, and the previous release continues with it. A session of that
 * release has no events until it is refreshed. The previous token distinguishes two clients that refreshed concurrently
 * from a stolen token.
 */
export const sessionEvents: Migration = {
  name: '0085-session-events',
  up: (knex) =>
    knex.raw(`
      alter table sessions add column previous_jti_hash text;
      create table user_sessions (
        id                uuid primary key,
        user_id           uuid not null,
        provider          text,
        active_account_id uuid,
        started_at        timestamptz not null,
        expires_at        timestamptz not null
      );
      create index user_sessions_user_idx on user_sessions (user_id, started_at desc, id desc);
      create index user_sessions_account_idx on user_sessions (active_account_id, id)
        where active_account_id is not null`),
};
