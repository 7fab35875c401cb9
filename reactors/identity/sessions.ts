import { reactor } from '../../app/reactor';
import { session, SESSION_EVENTS, sessionStream } from '../../domain/identity/sessions';

/** Maximum of expired sessions ended per login. Each login opens one session, so none accumulate. */
const MAX_EXPIRED = 20;

/** Ends the user's expired sessions at a login, and deletes the row of an ended session. */
export const sessionEnds = reactor({
  name: 'sessions',
  from: 'beginning',
  events: [SESSION_EVENTS],
  on: {
    async 'session:started'({ user_id }, { act, db, now }) {
      const expired = await db.query<{ id: string }>(
        'select id from user_sessions where user_id = $1 and expires_at <= $2 order by started_at limit $3',
        [user_id, now, MAX_EXPIRED],
        'sessions-expired',
      );
      for (const { id } of expired) await act(session, sessionStream(id), { type: 'session:end', reason: 'expired' });
    },
    'session:ended': ({ session_id }, { keep }) => keep('delete from sessions where id = $1', [session_id]),
  },
});
