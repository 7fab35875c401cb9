import { z } from 'zod';
import type { Database } from '../../engines/postgres/port';
import { badRequest, conflict, forbidden, invalid, notFound } from '../../kernel/operations/errors';
import { DomainError } from '../../kernel/errors';
import type { Caller } from '../../access/authentication/caller';
import { readClient } from './oauth-clients';

/** A client's authorization request, as our own front end forwards it. Source: spec rulings, "OAuth clients". */
export const AuthorizationInput = z.object({
  client_id: z.uuid(),
  redirect_uri: z.string().min(1).max(2000).describe('One that the client is registered with, to the character'),
  response_type: z.literal('code'),
  scope: z.string().min(1).max(4096).describe('Account permissions, separated by blanks'),
  state: z.string().min(1).max(1024).nullish().describe('Answered as it is'),
  code_challenge: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, 'code_challenge must be a SHA-256 in base64url')
    .describe('PKCE (RFC 7636)'),
  code_challenge_method: z.literal('S256'),
});

const { response_type, code_challenge, code_challenge_method } = AuthorizationInput.shape;
/** Query of our front end before the user agrees: the client's own request, which may be cut to what the page shows. */
export const AuthorizationQuestion = AuthorizationInput.extend({
  response_type: response_type.nullish(),
  code_challenge: code_challenge.nullish(),
  code_challenge_method: code_challenge_method.nullish(),
});

export const AUTHORIZATION_ERRORS = {
  NOT_IN_A_SESSION: forbidden('This action requires a logged-in user'),
  NO_ACTIVE_ACCOUNT: badRequest('Choose an account first: a client acts on one account'),
  CLIENT_NOT_FOUND: notFound('OAuth client not found'),
  CLIENT_DISABLED: conflict('This OAuth client is disabled'),
  CLIENT_TAKES_NO_CODE: invalid('This OAuth client may not use authorization_code'),
  REDIRECT_URI_UNKNOWN: invalid('redirect_uri is not registered for this OAuth client'),
  SCOPE_BEYOND_CLIENT: invalid('Invalid scope: {scope}'),
};

/**
 * Validates an authorization request and returns its client and scopes. Requires a session, because an API key of the
 * user may not agree, and the grant ends with the session.
 * @throws DomainError one of {@link AUTHORIZATION_ERRORS}
 */
export async function checkAuthorization(
  { db }: { db: Database },
  caller: Caller,
  asked: Pick<z.output<typeof AuthorizationInput>, 'client_id' | 'redirect_uri' | 'scope'>,
) {
  const { kind, credential_id: session_id, account_id } = caller;
  if (kind !== 'jwt' || session_id === null) throw new DomainError('NOT_IN_A_SESSION');
  if (account_id === null) throw new DomainError('NO_ACTIVE_ACCOUNT');
  const client = await readClient(db, asked.client_id);
  if (client === null) throw new DomainError('CLIENT_NOT_FOUND');
  if (!client.redirect_uris.includes(asked.redirect_uri)) throw new DomainError('REDIRECT_URI_UNKNOWN');
  if (!client.grant_types.includes('authorization_code')) throw new DomainError('CLIENT_TAKES_NO_CODE');
  const wanted = new Set(asked.scope.split(' ').filter(Boolean));
  const unregistered_scope = [...wanted].find((scope) => !client.scopes.includes(scope));
  if (unregistered_scope !== undefined || wanted.size === 0)
    throw new DomainError('SCOPE_BEYOND_CLIENT', { scope: unregistered_scope ?? '' });
  if (!client.enabled) throw new DomainError('CLIENT_DISABLED');
  const scopes = client.scopes.filter((scope) => wanted.has(scope));
  return { client, scopes, account_id, session_id };
}
