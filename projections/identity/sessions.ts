import { SESSION_EVENTS } from '../../domain/identity/sessions';
import { sql } from '../../kernel/sql';
import { all, eventProjection, noEffect, lastPer } from '../runtime/drive/handlers';

/** Active sessions; an ended session leaves no row, and its open connections are cut. */
export const sessions = eventProjection({
  name: 'sessions',
  version: 1,
  tables: ['user_sessions'],
  events: [SESSION_EVENTS],
  on: {
    'session:started': all(sql`
      insert into user_sessions (id, user_id, provider, active_account_id, started_at, expires_at)
      select session_id, user_id, provider, active_account_id, started_at, ends_at from e on conflict (id) do nothing`),
    'session:account_switched': lastPer(
      ['session_id'],
      sql`update user_sessions s set active_account_id = e.active_account_id from e where s.id = e.session_id`,
    ),
    // The resulting end is an event of its own.
    'session:reuse_detected': noEffect,
    'session:ended': all(sql`delete from user_sessions s using e where s.id = e.session_id`),
  },
  revokes: { 'session:ended': ({ session_id }) => ({ credential_id: session_id }) },
});
