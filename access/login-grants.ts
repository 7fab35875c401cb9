import type { Queryable } from '../engines/postgres/port';
import type { SecretBox } from '../engines/secrets/port';
import type { ProviderIdentity } from '../vendors/login/port';

/** What a login's tokens are sealed for: one login's do not open as another's. */
export const loginGrantContext = (login_connection_id: string): string => `login-grant ${login_connection_id}`;

export interface LoginGrant {
  login_connection_id: string;
  user_id: string;
  said: ProviderIdentity;
  access_token: string;
}

/** Keeps what the provider says of a login now, over what it said before. No event carries any of it. */
export async function writeLoginGrant(
  { db, secrets }: { db: Pick<Queryable, 'query'>; secrets: SecretBox },
  { login_connection_id, user_id, said, access_token }: LoginGrant,
): Promise<void> {
  const sealed = secrets.seal(JSON.stringify({ access_token }), loginGrantContext(login_connection_id));
  await db.query(
    `insert into login_grants (login_connection_id, user_id, provider_account_id, username, display_name, avatar_url,
                               scopes, token_expires_at, sealed)
     values ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8 / 1000.0), $9)
     on conflict (login_connection_id) do update set
       user_id = excluded.user_id, provider_account_id = excluded.provider_account_id, username = excluded.username,
       display_name = excluded.display_name, avatar_url = excluded.avatar_url, scopes = excluded.scopes,
       token_expires_at = excluded.token_expires_at, sealed = excluded.sealed, updated_at = clock_timestamp()`,
    [
      ...[login_connection_id, user_id, said.provider_id, said.username, said.display_name, said.avatar_url],
      ...[said.scopes, said.expires_at, sealed],
    ],
    'login-grant-write',
  );
}

export async function dropLoginGrant(db: Pick<Queryable, 'query'>, login_connection_id: string): Promise<void> {
  await db.query('delete from login_grants where login_connection_id = $1', [login_connection_id], 'login-grant-drop');
}
