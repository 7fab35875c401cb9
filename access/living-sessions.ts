import { session, sessionStream } from '../domain/sessions';
import type { Queryable } from '../engines/postgres/port';
import type { Act } from './act';

/** A session's row, where it has not ended. */
export interface Living {
  user_id: string;
  current: string;
  previous: string | null;
  /** Unix milliseconds. */
  created_at: number;
  ends_at: number;
}

const MS = (column: string) => `(extract(epoch from s.${column}) * 1000)::float8`;
/** Of `sessions s`. */
export const LIVING = `s.user_id, s.refresh_jti_hash as current, s.previous_jti_hash as previous,
  ${MS('created_at')} as created_at, ${MS('expires_at')} as ends_at`;

/** `came_before`: whether the call was received before the token was traded last, by the database's clock alone. */
export async function livingOf(
  db: Pick<Queryable, 'query'>,
  session_id: string,
  now: number,
): Promise<(Living & { came_before: boolean }) | null> {
  const [row] = await db.query(
    `select ${LIVING}, clock_timestamp() - make_interval(secs => $3 / 1000.0) < s.refreshed_at as came_before
     from sessions s join users u on u.id = s.user_id
     where s.id = $1 and s.expires_at > to_timestamp($2 / 1000.0)
       and not exists (select 1 from revocations r where r.credential_id = s.id::text)`,
    // How long ago is the same by every clock.
    [session_id, now, Date.now() - now],
    'session-living',
  );
  return (row as (Living & { came_before: boolean }) | undefined) ?? null;
}

/** A session of the build before gets its first event. */
export async function adopt(act: Act, session_id: string, living: Living, account_id: string | null): Promise<void> {
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
