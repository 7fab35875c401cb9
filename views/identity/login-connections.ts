import { z } from 'zod';
import type { LoginProvider } from '../../domain/identity/login-connections';
import type { Queryable } from '../../engines/postgres/port';
import { loginBlockingFlag } from '../../services/identity/provider-logins';
import type { Services } from '../../app/services';

const dateTime = z.string().meta({ format: 'date-time' });

/** A person's login as shown to them; never its tokens. Source: spec doc2 §2.4. */
export const LoginConnection = z
  .object({
    id: z.uuid(),
    provider: z.string(),
    provider_account_id: z.string().nullable().describe('Null where an operator made the login, until it is used'),
    username: z.string().nullable(),
    display_name: z.string().nullable(),
    avatar_url: z.string().nullable(),
    scopes: z.array(z.string()),
    token_expires_at: dateTime.nullable(),
    reconnect_required: z.boolean(),
    connected_at: dateTime,
  })
  .meta({ id: 'LoginConnection' });
export type LoginConnection = z.output<typeof LoginConnection>;

/** The user's own logins, oldest first; with `id` only that one. */
export function loginConnectionsOf(
  db: Pick<Queryable, 'query'>,
  user_id: string,
  id: string | null = null,
): Promise<LoginConnection[]> {
  return db.query<LoginConnection & Record<string, unknown>>(
    `select c.id, c.provider, g.provider_account_id, g.username, g.display_name, g.avatar_url,
       coalesce(g.scopes, '{}') as scopes, g.token_expires_at, c.reconnect_required, c.connected_at
     from login_connections c left join login_grants g on g.login_connection_id = c.id
     where c.user_id = $1 and ($2::uuid is null or c.id = $2) order by c.connected_at, c.id`,
    [user_id, id],
    'login-connections',
  );
}

/** Logins whose provider is enabled. */
export async function offeredLoginsOf(
  services: Pick<Services, 'db' | 'features'>,
  user_id: string,
): Promise<LoginConnection[]> {
  const own = await loginConnectionsOf(services.db, user_id);
  const providers = [...new Set(own.map(({ provider }) => provider))];
  const flags = await Promise.all(providers.map((one) => loginBlockingFlag(services, one as LoginProvider)));
  return own.filter(({ provider }) => flags[providers.indexOf(provider)] === null);
}
