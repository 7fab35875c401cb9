import { reactor } from '../access/reactor';
import { session, SESSION_EVENTS, sessionStream } from '../domain/sessions';

/** Expired sessions that one login ends. Each login opens one session, so that they never collect beyond this. */
const MOST_EXPIRED = 20;

/**
 * A login ends the user's sessions whose time is over. The row of a session goes with the event that ended it: nobody
 * may hold it any longer.
 */
export const sessionEnds = reactor({
  name: 'sessions',
  from: 'beginning',
  events: [SESSION_EVENTS],
  on: {
    async 'session:started'({ user_id }, { act, db, now }) {
      const expired = await db.query<{ id: string }>(
        'select id from user_sessions where user_id = $1 and expires_at <= $2 order by started_at limit $3',
        [user_id, now, MOST_EXPIRED],
        'sessions-expired',
      );
      for (const { id } of expired) await act(session, sessionStream(id), { type: 'session:end', reason: 'expired' });
    },
    'session:ended': ({ session_id }, { keep }) => keep('delete from sessions where id = $1', [session_id]),
  },
});
