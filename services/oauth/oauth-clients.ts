import { randomBytes } from 'node:crypto';
import type { Queryable } from '../../engines/postgres/port';
import { hashToken } from '../../access/authentication/keys';
import type { OauthClient } from '../../views/oauth-provider/oauth-clients';

const PREFIX = 'lm_oauth_';

/** Generates a client's secret: shown once, stored as a hash. */
export function newClientSecret(): { secret: string; hash: string } {
  const secret = PREFIX + randomBytes(32).toString('hex');
  return { secret, hash: hashToken(secret) };
}

/** Reads a client from its read model; null when it is unknown or was deleted. */
export async function readClient(
  db: Queryable,
  client_id: string,
): Promise<(OauthClient & { secret_hash: string | null }) | null> {
  const [row] = await db.query<OauthClient & { secret_hash: string | null }>(
    `select client_id, name, client_type, account_id, redirect_uris, scopes, grant_types, enabled, secret_hash,
       created_at, updated_at
     from oauth_clients c
     where client_id = $1 and not exists (select 1 from revocations v where v.credential_id = c.client_id::text)`,
    [client_id],
    'oauth-client',
  );
  return row ?? null;
}
