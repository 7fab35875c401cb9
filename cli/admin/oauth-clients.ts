import { v7 } from 'uuid';
import { handle } from '../../app/write-path/command-handler';
import { newClientSecret } from '../../services/oauth/oauth-clients';
import {
  oauthClient,
  oauthClientStream,
  type ClientType,
  type GrantType,
} from '../../domain/oauth-provider/oauth-clients';
import { DomainError } from '../../kernel/errors';
import { requireAccount } from './accounts';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './shared/operator';

export interface NewOauthClient {
  name: string;
  client_type: ClientType;
  redirect_uris: readonly string[];
  scopes: readonly string[];
  grant_types: readonly GrantType[];
  /** Account that client_credentials act on. */
  account_id?: string | undefined;
}

const REFUSALS: Readonly<Record<string, string>> = {
  REDIRECT_URI_REFUSED: 'invalid redirect URI: {redirect_uri}',
  REDIRECT_URI_MISSING: 'authorization_code needs a redirect URI',
  UNKNOWN_PERMISSION: 'invalid permission: {permission}',
  SCOPE_NOT_FOR_CLIENTS: 'an OAuth client may not hold {permission}: what it makes would outlive it',
  NOT_ITS_OWN_MASTER: 'client_credentials needs a confidential client with an account',
};

/** Registers an OAuth client. Its secret is shown once and stored as a hash. @throws AdminError */
export async function createOauthClient(
  services: AdminServices,
  { account_id = undefined, ...wanted }: NewOauthClient,
): Promise<{ client_id: string; client_secret: string | null }> {
  if (account_id !== undefined) await requireAccount(services, account_id);
  const client_id = v7();
  const made = wanted.client_type === 'confidential' ? newClientSecret() : null;
  try {
    await handle(asOperator(OPERATOR), services, {
      decider: oauthClient,
      stream: oauthClientStream(client_id),
      command: {
        type: 'oauth_client:register',
        ...{ client_id, account_id: account_id ?? null, name: wanted.name, client_type: wanted.client_type },
        ...{ redirect_uris: [...wanted.redirect_uris], scopes: [...wanted.scopes] },
        ...{ grant_types: [...wanted.grant_types], enabled: true, secret_hash: made?.hash ?? null, now: nowText() },
      },
    });
  } catch (error) {
    const text = error instanceof DomainError ? REFUSALS[error.reason] : undefined;
    if (text === undefined) throw error;
    const { details } = error as DomainError;
    throw new AdminError(text.replaceAll(/\{(\w+)\}/g, (_all, name: string) => String(details[name])));
  }
  return { client_id, client_secret: made?.secret ?? null };
}
