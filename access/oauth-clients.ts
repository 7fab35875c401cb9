import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { CLIENT_TYPES, GRANT_TYPES } from '../domain/oauth-clients';
import type { Queryable } from '../engines/postgres/port';
import { hashToken } from './keys';

const dateTime = z.string().meta({ format: 'date-time' });

/** An OAuth client as administrators see it; never its secret. Source: spec extra-facts §27. */
export const OauthClient = z
  .object({
    client_id: z.uuid(),
    name: z.string(),
    client_type: z.enum(CLIENT_TYPES).meta({ id: 'OauthClientType' }),
    account_id: z.uuid().nullable().describe('What client_credentials act on'),
    redirect_uris: z.array(z.string()),
    scopes: z.array(z.string()),
    grant_types: z.array(z.enum(GRANT_TYPES).meta({ id: 'OauthGrantType' })),
    enabled: z.boolean().describe('A disabled client starts nothing new; what it was given lives on'),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'OauthClient' });
export type OauthClient = z.output<typeof OauthClient>;

const PREFIX = 'lm_oauth_';

/** A client's secret: shown once, its hash is kept. */
export function newClientSecret(): { secret: string; hash: string } {
  const secret = PREFIX + randomBytes(32).toString('hex');
  return { secret, hash: hashToken(secret) };
}

/** As its read model has it, unless it was just deleted; null when there is none. */
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
