import { createHmac, randomBytes } from 'node:crypto';
import type { Queryable } from '../engines/postgres/port';
import type { SecretBox } from '../engines/secrets/port';

/** What the key of the identities' hashes is sealed for, and its row in `installation`. */
export const IDENTITY_KEY = 'identity-key';

/**
 * A person at a login provider as events and reservations know them: hex HMAC-SHA256 of `provider:provider_id`, under a
 * key of this database. The id itself is personal and events are never rewritten; a plain hash of a short number could
 * be tried out. The key is no master key, so that the hashes outlive a rotation, and it is in every backup, so that a
 * restored system still knows who logs in.
 */
export async function identityHash(
  { db, secrets }: { db: Queryable; secrets: SecretBox },
  provider: string,
  provider_id: string,
): Promise<string> {
  const fresh = secrets.seal(randomBytes(32), IDENTITY_KEY);
  await db.query('insert into installation (name, value) values ($1, $2) on conflict do nothing', [
    IDENTITY_KEY,
    fresh,
  ]);
  const [row] = await db.query<{ value: string }>('select value from installation where name = $1', [IDENTITY_KEY]);
  return createHmac('sha256', secrets.open(row!.value, IDENTITY_KEY))
    .update(`${provider}:${provider_id}`)
    .digest('hex');
}
