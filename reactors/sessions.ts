import { reactor } from '../access/reactor';
import { session, SESSION_EVENTS, sessionStream } from '../domain/sessions';

/** Of one user, at a login: one login brings one session, so more than this never collect. */
const MOST_EXPIRED = 20;

/**
 * Who logs in has their sessions ended whose time is over. A session that was ended without its row is left with none:
 * no one holds it any longer.
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
