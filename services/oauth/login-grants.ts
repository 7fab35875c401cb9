import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import type { SecretBox } from '../../privacy/secrets/port';
import type { ProviderIdentity } from '../../vendors/login/port';

/** Purpose under which a login's tokens are sealed: the tokens of one login do not open under another. */
export const loginGrantContext = (login_connection_id: string): string => `login-grant ${login_connection_id}`;

/** Sealed part of a login: its token, and the app that it was given to, where calls name it. */
const LoginTokens = z.object({ access_token: z.string(), client_id: z.string().nullable().default(null) });
export type LoginTokens = z.output<typeof LoginTokens>;

/** The token of a login, and who owns it at the provider. */
export interface KeptLogin extends LoginTokens {
  provider_account_id: string;
  username: string | null;
  display_name: string | null;
  scopes: readonly string[];
  /** Unix milliseconds; null: no expiry. */
  expires_at: number | null;
}

/** Returns null where no token is stored. */
export async function readLoginGrant(
  { db, secrets }: { db: Pick<Queryable, 'query'>; secrets: SecretBox },
  login_connection_id: string,
): Promise<KeptLogin | null> {
  const [row] = await db.query<Omit<KeptLogin, keyof LoginTokens> & { sealed: string }>(
    `select provider_account_id, username, display_name, scopes, sealed,
       (extract(epoch from token_expires_at) * 1000)::float8 as expires_at
     from login_grants where login_connection_id = $1`,
    [login_connection_id],
    'login-grant',
  );
  if (row === undefined) return null;
  const { sealed, ...kept } = row;
  const text = secrets.open(sealed, loginGrantContext(login_connection_id)).toString();
  return { ...kept, ...LoginTokens.parse(JSON.parse(text)) };
}

export interface LoginGrant {
  login_connection_id: string;
  user_id: string;
  said: ProviderIdentity;
  access_token: string;
}

/** Replaces the provider's data and tokens of a login. No event carries any of it. */
export async function writeLoginGrant(
  { db, secrets }: { db: Pick<Queryable, 'query'>; secrets: SecretBox },
  { login_connection_id, user_id, said, access_token }: LoginGrant,
): Promise<void> {
  const tokens: LoginTokens = { access_token, client_id: said.client_id ?? null };
  const sealed = secrets.seal(JSON.stringify(tokens), loginGrantContext(login_connection_id));
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
