import type { Migration } from './index';

/** Time of a session's last count; the job checks recently counted sessions for late rows. */
export const sessionCounts: Migration = {
  name: '0456-session-counts',
  up: (knex) =>
    knex.raw(`
      alter table stream_sessions add column counted_at timestamptz;
      create index stream_sessions_counted on stream_sessions (counted_at) where not is_live`),
};
