import { v7 } from 'uuid';
import { actFor } from '../../access/act';
import { mintBoundToken, revokeBoundTokens, type Bound } from '../../access/bound-tokens';
import { generateKey } from '../../access/keys';
import { serviceKey, serviceKeyStream } from '../../domain/service-keys';
import { popoutToken, popoutTokenStream } from '../../domain/tokens';
import { requireAccount } from './accounts';
import { AdminError, asOperator, OPERATOR, type AdminServices } from './operator';

/** What every key and token is made for. */
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
  /** Shown once: only its hash is kept. */
  token: string;
}

/** Makes a key of the account. @throws AdminError when there is no such account */
export async function createServiceKey(
  services: AdminServices,
  { permissions, ...wanted }: Scoped,
): Promise<MadeToken> {
  await requireAccount(services, wanted.account_id);
  const [key_id, made] = [v7(), generateKey('service_key')];
  await actFor(asOperator(OPERATOR), services)(serviceKey, serviceKeyStream(key_id), {
    type: 'service_key:create',
    ...{ key_id, ...wanted, created_by: null, permissions: [...permissions] },
    ...{ key_hash: made.hash, key_prefix: made.prefix },
  });
  return { id: key_id, token: made.key };
}

/** Makes a popout token of a member. @throws AdminError when the account is not there, or the user no member of it */
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

/** Mints a token of one overlay, widget or install. @throws AdminError when there is no such account */
export async function createBoundToken(
  services: AdminServices,
  { expires_at, ...bound }: Omit<Bound, 'expires_at'> & Wanted,
): Promise<MadeToken> {
  await requireAccount(services, bound.account_id);
  const ends_at = expires_at === null ? null : Date.parse(expires_at);
  return mintBoundToken(services, { ...bound, expires_at: ends_at });
}

/** Ends a token of one overlay, widget or install. @throws AdminError when there is none */
export async function revokeBoundToken(services: AdminServices, account_id: string, id: string): Promise<void> {
  if ((await revokeBoundTokens(services, { account_id, id })) === 0)
    throw new AdminError(`there is no token ${id} that could be revoked`);
}
