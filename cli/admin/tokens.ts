import { v7 } from 'uuid';
import { actFor } from '../../app/write-path/act';
import { mintBoundToken, revokeBoundTokens, type Bound } from '../../access/authentication/tokens/bound-tokens';
import { generateKey } from '../../access/authentication/keys';
import { boundToken, boundTokenStream } from '../../domain/credentials/bound-tokens';
import { serviceKey, serviceKeyStream } from '../../domain/credentials/service-keys';
import { popoutToken, popoutTokenStream } from '../../domain/credentials/popout-tokens';
import { requireAccount } from './accounts';
import { AdminError, asOperator, OPERATOR, type AdminServices } from './shared/operator';

/** Common input of keys and tokens. */
interface Wanted {
  account_id: string;
  /** RFC 3339; null is never. */
  expires_at: string | null;
}

interface Scoped extends Wanted {
  label: string;
  permissions: readonly string[];
}

export interface MadeToken {
  id: string;
  /** Shown once; only its hash is stored. */
  token: string;
}

/** Creates a service key of the account. @throws AdminError for an unknown account */
export async function createServiceKey(
  services: AdminServices,
  { permissions, ...wanted }: Scoped,
): Promise<MadeToken> {
  await requireAccount(services, wanted.account_id);
  const [key_id, made] = [v7(), generateKey('service_key')];
  await actFor(asOperator(OPERATOR), services)(serviceKey, serviceKeyStream(key_id), {
    type: 'service_key:create',
    ...{ key_id, ...wanted, created_by: null, made_with: null, permissions: [...permissions] },
    ...{ key_hash: made.hash, key_prefix: made.prefix },
  });
  return { id: key_id, token: made.key };
}

/** Creates a popout token for a member. @throws AdminError for an unknown account or a non-member */
export async function createPopoutToken(
  services: AdminServices,
  { permissions, user_id, ...wanted }: Scoped & { user_id: string },
): Promise<MadeToken> {
  const { members } = await requireAccount(services, wanted.account_id);
  if (!members.has(user_id)) throw new AdminError(`user ${user_id} is no member of account ${wanted.account_id}`);
  const [token_id, made] = [v7(), generateKey('popout')];
  await actFor(asOperator(OPERATOR), services)(popoutToken, popoutTokenStream(token_id), {
    type: 'popout_token:create',
    ...{ token_id, ...wanted, user_id, created_by: user_id, permissions: [...permissions] },
    ...{ token_hash: made.hash, token_prefix: made.prefix },
  });
  return { id: token_id, token: made.key };
}

/** Mints a token for one overlay, widget or install. @throws AdminError for an unknown account */
export async function createBoundToken(
  services: AdminServices,
  { expires_at, ...bound }: Omit<Bound, 'expires_at'> & Wanted,
): Promise<MadeToken> {
  await requireAccount(services, bound.account_id);
  const ends_at = expires_at === null ? null : Date.parse(expires_at);
  const minted = await mintBoundToken(services, { ...bound, expires_at: ends_at });
  const { kind, account_id, resource_id } = bound;
  await actFor(asOperator(OPERATOR), services)(boundToken, boundTokenStream(minted.id), {
    type: 'bound_token:create',
    ...{ token_id: minted.id, account_id, kind, resource_id },
    expires_at: minted.expires_at === null ? null : new Date(minted.expires_at).toISOString(),
  });
  return minted;
}

/** Revokes a token for one overlay, widget or install. @throws AdminError for an unknown token */
export async function revokeBoundToken(services: AdminServices, account_id: string, id: string): Promise<void> {
  if ((await revokeBoundTokens(services, { account_id, id })) === 0)
    throw new AdminError(`there is no token ${id} that could be revoked`);
  await actFor(asOperator(OPERATOR), services)(boundToken, boundTokenStream(id), {
    type: 'bound_token:revoke',
    ...{ token_id: id, account_id },
  });
}
