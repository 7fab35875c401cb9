import { z } from 'zod';
import { LOGIN_PROVIDERS, platformOf } from '../../domain/identity/login-connections';
import type { Queryable } from '../../engines/postgres/port';

/** A user who could be invited. Source: spec extra-facts §4. */
export const FoundUser = z
  .object({
    id: z.uuid(),
    display_name: z.string(),
    avatar_url: z.string().nullable(),
    connections: z.array(
      z
        .object({ platform: z.string(), username: z.string().nullable(), avatar_url: z.string().nullable() })
        .meta({ id: 'FoundUserConnection' }),
    ),
  })
  .meta({ id: 'FoundUser' });
export type FoundUser = z.output<typeof FoundUser>;

/** Sorts after every character that may follow a prefix. */
const LAST = '\u{10ffff}';

/**
 * Users whose name, or name on a platform, begins with `beginning`, except members of the account. Range bounds instead
 * of a pattern, so that an index serves any input.
 */
export async function searchUsersByName(
  db: Queryable,
  account_id: string,
  beginning: string,
  limit: number,
): Promise<FoundUser[]> {
  const rows = await db.query<Omit<FoundUser, 'connections'> & { connections: (Connection & { provider: string })[] }>(
    `with called as (
       (select user_id from profiles
        where lower(display_name) ~>=~ lower($2) and lower(display_name) ~<~ (lower($2) || $3)
          and not exists (select 1 from account_members m where m.account_id = $1 and m.user_id = profiles.user_id)
        order by lower(display_name) using ~<~ limit $4)
       union
       (select user_id from login_grants
        where lower(username) ~>=~ lower($2) and lower(username) ~<~ (lower($2) || $3)
          and not exists (select 1 from account_members m where m.account_id = $1 and m.user_id = login_grants.user_id)
        order by lower(username) using ~<~ limit $4)
     )
     select p.user_id as id, p.display_name, p.avatar_url, coalesce((
       select jsonb_agg(jsonb_build_object('provider', c.provider, 'username', g.username, 'avatar_url', g.avatar_url)
                        order by c.connected_at, c.id)
       from login_connections c left join login_grants g on g.login_connection_id = c.id where c.user_id = p.user_id
     ), '[]') as connections
     from called join profiles p using (user_id) join users u on u.id = p.user_id
     order by lower(p.display_name), p.user_id limit $4`,
    [account_id, beginning, LAST, limit],
    'users-called',
  );
  return rows.map(({ connections, ...found }) => ({
    ...found,
    connections: connections.map(({ provider, ...one }) => ({ platform: slugOf(provider), ...one })),
  }));
}

type Connection = Omit<FoundUser['connections'][number], 'platform'>;

function slugOf(provider: string): string {
  const known = LOGIN_PROVIDERS.find((one) => one === provider);
  return known === undefined ? provider : platformOf(known);
}
