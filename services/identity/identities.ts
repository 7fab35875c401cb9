import { createHmac, randomBytes } from 'node:crypto';
import type { Queryable } from '../../engines/postgres/port';
import type { SecretBox } from '../../privacy/secrets/port';

/** Row in `installation` of the key for identity hashes, and the purpose that it is sealed for. */
export const IDENTITY_KEY = 'identity-key';

/**
 * Id of a person at a login provider in events and reservations: hex HMAC-SHA256 of `provider:provider_id` under a key
 * of this database. The id itself is personal and events are never rewritten; a plain hash of a short number could be
 * guessed. The key is not a master key, so that the hashes survive a rotation, and is in every backup, so that a
 * restored system still recognises logins.
 */
export async function identityHash(deps: IdentityDeps, provider: string, provider_id: string): Promise<string> {
  return (await identityHasher(deps))(provider, provider_id);
}

interface IdentityDeps {
  db: Pick<Queryable, 'query'>;
  secrets: SecretBox;
}
export type IdentityHasher = (provider: string, provider_id: string) => string;

/** {@link identityHash} for many ids, with the key read once. */
export async function identityHasher({ db, secrets }: IdentityDeps): Promise<IdentityHasher> {
  const fresh = secrets.seal(randomBytes(32), IDENTITY_KEY);
  await db.query('insert into installation (name, value) values ($1, $2) on conflict do nothing', [
    IDENTITY_KEY,
    fresh,
  ]);
  const [row] = await db.query<{ value: string }>('select value from installation where name = $1', [IDENTITY_KEY]);
  const key = secrets.open(row!.value, IDENTITY_KEY);
  return (provider, provider_id) => createHmac('sha256', key).update(`${provider}:${provider_id}`).digest('hex');
}
