import type { Services } from '../../app/services';
import { userStream } from '../../domain/identity/users';
import { PLATFORMS } from '../../domain/common/vendors';
import { keepIdentities } from './identities';

/**
 * A registered user as the platforms know them (`twitch:123`), by each login that they ever had. Events and channels of
 * logins with Google are keyed hashes; the people of the chats have them, too.
 */
export async function subjectsOfUser(
  services: Pick<Services, 'db' | 'events' | 'secrets'>,
  user_id: string,
): Promise<string[]> {
  const { db, events } = services;
  const history = await events.read(userStream(user_id));
  const hashes = history.flatMap(({ data: { identity } }) => (typeof identity === 'string' ? [identity] : []));
  await keepIdentities(services);
  const subjects = await db.query<{ subject: string }>(
    `select l.provider || ':' || g.provider_account_id as subject
     from login_grants g join login_connections l on l.id = g.login_connection_id
     where g.user_id = $1 and l.provider = any($2)
     union
     select platform || ':' || platform_user_id from platform_users
     where platform_user_id is not null and identity_hash in (
       select unnest($3::text[]) union all select identity_hash from user_channels where user_id = $1)`,
    [user_id, PLATFORMS, hashes],
  );
  return subjects.map(({ subject }) => subject);
}
