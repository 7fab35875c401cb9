import type { Migration } from './index';

/**
 * Merges of sessions that a late broadcast joins. Claims hold the times and the grace that they were decided by, so
 * that a changed grace joins no earlier sessions. `pending_session_merges` are decided, their events may be missing
 * yet; `merged_sessions` is a read model: the session that the id of a merged one leads to.
 */
export const sessionMerges: Migration = {
  name: '0520-session-merges',
  up: (knex) =>
    knex.raw(`
      alter table session_claims
        add column started_at timestamptz,
        add column ended_at   timestamptz,
        add column grace_ms   bigint,
        add column is_deleted boolean not null default false;

      create table pending_session_merges (
        younger_id uuid primary key,
        older_id   uuid not null,
        account_id uuid not null
      );
      create index pending_session_merges_older on pending_session_merges (older_id);

      create table merged_sessions (
        session_id uuid primary key,
        account_id uuid not null,
        into_id    uuid not null
      );
      create index merged_sessions_into on merged_sessions (into_id);
      create index merged_sessions_account on merged_sessions (account_id)`),
};
