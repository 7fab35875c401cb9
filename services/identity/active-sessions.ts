import { session, sessionStream } from '../../domain/identity/sessions';
import type { Queryable } from '../../engines/postgres/port';
import type { Act } from '../../app/write-path/act';

/** Row of an active session. */
export interface ActiveSession {
  user_id: string;
  current: string;
  previous: string | null;
  /** Unix milliseconds. */
  created_at: number;
  ends_at: number;
}

const MS = (column: string) => `(extract(epoch from s.${column}) * 1000)::float8`;
/** Columns of {@link ActiveSession}, from `sessions s`. */
export const ACTIVE_SESSION_COLUMNS = `s.user_id, s.refresh_jti_hash as current, s.previous_jti_hash as previous,
  ${MS('created_at')} as created_at, ${MS('expires_at')} as ends_at`;

/**
 * Reads an active session. `came_before`: the call arrived before the last rotation of the refresh token, by the
 * database's clock.
 */
export async function findActiveSession(
  db: Pick<Queryable, 'query'>,
  session_id: string,
  now: number,
): Promise<(ActiveSession & { came_before: boolean }) | null> {
  const [row] = await db.query(
    `select ${ACTIVE_SESSION_COLUMNS}, clock_timestamp() - make_interval(secs => $3 / 1000.0) < s.refreshed_at as came_before
     from sessions s join users u on u.id = s.user_id
     where s.id = $1 and s.expires_at > to_timestamp($2 / 1000.0)
       and not exists (select 1 from revocations r where r.credential_id = s.id::text)`,
    // The age of the call, which does not depend on the clock's offset.
    [session_id, now, Date.now() - now],
    'session-living',
  );
  return (row as (ActiveSession & { came_before: boolean }) | undefined) ?? null;
}

/** Appends the first event of a session that an older release began. */
export async function backfillSessionStream(
  act: Act,
  session_id: string,
  living: ActiveSession,
  account_id: string | null,
): Promise<void> {
  const { user_id, created_at, ends_at } = living;
  await act(
    session,
    sessionStream(session_id),
    {
      type: 'session:adopt',
      ...{ session_id, user_id, provider: null, active_account_id: account_id },
      ...{ started_at: new Date(created_at).toISOString(), ends_at: new Date(ends_at).toISOString() },
    },
    { step: 'adopt' },
  );
}
