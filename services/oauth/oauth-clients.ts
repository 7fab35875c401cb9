import { randomBytes } from 'node:crypto';
import { Collector } from '../../lib/async/collector';
import type { Queryable } from '../../engines/postgres/port';
import { hashToken } from '../../access/authentication/keys';
import type { OauthClient } from '../../views/oauth-provider/oauth-clients';

const PREFIX = 'lm_oauth_';

/** Generates a client's secret: shown once, stored as a hash. */
export function newClientSecret(): { secret: string; hash: string } {
  const secret = PREFIX + randomBytes(32).toString('hex');
  return { secret, hash: hashToken(secret) };
}

type StoredClient = OauthClient & { secret_hash: string | null };

/** Reads a client from its read model; null when it is unknown or was deleted. */
export async function readClient(db: Queryable, client_id: string): Promise<StoredClient | null> {
  const [found] = await readClients(db, [client_id]);
  return found!;
}

const groups = new WeakMap<Queryable, Collector<string, StoredClient | null>>();

/**
 * Reads a client as {@link readClient} does. Concurrent calls share a statement, because a network without calls left
 * may still present a secret.
 */
export function readClientInGroup(db: Queryable, client_id: string): Promise<StoredClient | null> {
  let group = groups.get(db);
  if (group === undefined) groups.set(db, (group = new Collector({ send: (ids) => readClients(db, ids) })));
  return group.add(client_id);
}

async function readClients(db: Queryable, client_ids: readonly string[]): Promise<(StoredClient | null)[]> {
  const rows = await db.query<StoredClient>(
    `select client_id, name, client_type, account_id, redirect_uris, scopes, grant_types, enabled, secret_hash,
       created_at, updated_at
     from oauth_clients c
     where client_id = any($1::uuid[])
       and not exists (select 1 from revocations v where v.credential_id = c.client_id::text)`,
    [client_ids],
    'oauth-clients',
  );
  const found = new Map(rows.map((row) => [row.client_id, row]));
  return client_ids.map((id) => found.get(id.toLowerCase()) ?? null);
}
