import { SESSION_EVENTS } from '../domain/sessions';
import { sql } from '../kernel/sql';
import { all, handled, ignored, last } from './runtime/handlers';

/** Sessions that nobody has ended; one that has ended leaves no row, and what is open of it is cut. */
export const sessions = handled({
  name: 'sessions',
  version: 1,
  tables: ['user_sessions'],
  events: [SESSION_EVENTS],
  on: {
    'session:started': all(sql`
      insert into user_sessions (id, user_id, provider, active_account_id, started_at, expires_at)
      select session_id, user_id, provider, active_account_id, started_at, ends_at from e on conflict (id) do nothing`),
    'session:account_switched': last(
      ['session_id'],
      sql`update user_sessions s set active_account_id = e.active_account_id from e where s.id = e.session_id`,
    ),
    // The end that follows from it is an event of its own.
    'session:reuse_detected': ignored,
    'session:ended': all(sql`delete from user_sessions s using e where s.id = e.session_id`),
  },
  revokes: { 'session:ended': ({ session_id }) => ({ credential_id: session_id }) },
});
