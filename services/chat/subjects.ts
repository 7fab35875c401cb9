import { PLATFORMS } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';

/**
 * A registered user as the platforms know them, by their logins: `twitch:123`. A login with Google does not name its
 * channel.
 */
export async function subjectsOfUser(db: Pick<Queryable, 'query'>, user_id: string): Promise<string[]> {
  const logins = await db.query<{ subject: string }>(
    `select distinct l.provider || ':' || g.provider_account_id as subject
     from login_grants g join login_connections l on l.id = g.login_connection_id
     where g.user_id = $1 and l.provider = any($2)`,
    [user_id, PLATFORMS],
  );
  return logins.map(({ subject }) => subject);
}
