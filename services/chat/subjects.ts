import type { Services } from '../../app/services';
import { userStream } from '../../domain/identity/users';
import { PLATFORMS } from '../../domain/common/vendors';
import { identityHasher } from '../identity/identities';
import { keepIdentities } from './identities';

/**
 * A registered user as the platforms know them (`twitch:123`), by each login that they ever had. Events and channels of
 * logins with Google are keyed hashes; the people of the chats have them, too. Logins that ended are rows of their own,
 * because their persons may have written no message.
 */
export async function subjectsOfUser(
  services: Pick<Services, 'db' | 'events' | 'secrets'>,
  user_id: string,
): Promise<string[]> {
  const { db, events } = services;
  const hash = await identityHasher(services);
  const history = await events.read(userStream(user_id));
  const hashes = history.flatMap(({ data: { identity } }) => (typeof identity === 'string' ? [identity] : []));
  await keepIdentities(services);
  const people = await db.query<{ subject: string }>(
    `select distinct platform || ':' || platform_user_id as subject from platform_users
     where platform_user_id is not null and identity_hash in (
       select unnest($2::text[]) union all select identity_hash from user_channels where user_id = $1)`,
    [user_id, hashes],
  );
  // A login that has just ended has a row in either table, and its provider in the events alone.
  const logins = await db.query<{ id: string }>(
    `select provider_account_id as id from login_grants where user_id = $1
     union select provider_account_id from former_logins where user_id = $1`,
    [user_id],
  );
  const known = logins.flatMap(({ id }) =>
    PLATFORMS.filter((platform) => hashes.includes(hash(platform, id))).map((platform) => `${platform}:${id}`),
  );
  return [...new Set([...known, ...people.map(({ subject }) => subject)])];
}
