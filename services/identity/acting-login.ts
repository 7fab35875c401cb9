import type { Queryable } from '../../engines/postgres/port';

/**
 * Login of user $2 that counts at `p.platform` for account $1: the one assigned there, else any of theirs. Source: spec
 * doc2 §2.10.
 */
export const ACTING_LOGIN = `
  select l.id, l.reconnect_required from login_connections l
    left join account_login_assignments a on a.account_id = $1 and a.user_id = $2 and a.login_connection_id = l.id
  where l.user_id = $2 and l.provider = case p.platform when 'youtube' then 'google' else p.platform end
  order by (a.id is null), l.reconnect_required, l.connected_at, l.id limit 1`;

/** The login by which a user acts for an account on a platform; null without one. */
export async function actingLogin(
  db: Pick<Queryable, 'query'>,
  { account_id, user_id, platform }: { account_id: string | null; user_id: string; platform: string },
): Promise<{ id: string; reconnect_required: boolean } | null> {
  const [login] = await db.query<{ id: string; reconnect_required: boolean }>(
    `select l.* from (select $3::text as platform) p cross join lateral (${ACTING_LOGIN}) l`,
    [account_id, user_id, platform],
    'acting-login',
  );
  return login ?? null;
}
