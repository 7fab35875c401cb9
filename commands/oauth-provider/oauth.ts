import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { Act } from '../../app/write-path/act';
import type { RequestContext } from '../../access/authentication/caller';
import { hashToken } from '../../access/authentication/keys';
import { AUTHORIZATION_ERRORS, AuthorizationInput, checkAuthorization } from '../../services/oauth/oauth-authorization';
import { readClientInGroup } from '../../services/oauth/oauth-clients';
import {
  dropCode,
  endSurplusGrants,
  keepCode,
  killGrant,
  livingGrant,
  openGrant,
  rotateGrant,
  takeCode,
} from '../../access/authentication/tokens/oauth-grants';
import type { Grant } from '../../access/authentication/tokens/oauth-grants';
import { badRequest, command, firstParty, post, publicAccess, unauthorized } from '../../app/operation';
import type { Services } from '../../app/services';
import { newId } from '../../app/write-path/event-ids';
import { clientBucket } from '../../access/limits/rate-buckets';
import { hashJti, type SignedToken } from '../../access/authentication/tokens/jwt';
import type { GrantType } from '../../domain/oauth-provider/oauth-clients';
import { oauthGrant, oauthGrantStream, type GrantEnd } from '../../domain/oauth-provider/oauth-grants';
import { DomainError } from '../../kernel/errors';
import type { OperationError } from '../../kernel/operations/errors';

/**
 * Records the user's agreement: our own front end calls it in their session, after showing the client and its scopes.
 */
export const authorizeOauthClient = command({
  name: 'authorizeOauthClient',
  // Source: spec rulings, "OAuth clients".
  summary: 'Gives an OAuth client a code, in the name of the logged-in user and for the active account',
  rest: post('/v1/auth/authorize', { standard_parameters: true }),
  graphql: { argument: 'input' },
  guard: [firstParty],
  input: AuthorizationInput.meta({ id: 'AuthorizeOauthClientInput' }),
  output: z
    .object({
      code: z.string().describe('Good once, for 60 seconds'),
      state: z.string().nullable().describe('As it was sent'),
      redirect_uri: z.string().describe('Where the user is sent with both as query parameters'),
    })
    .meta({ id: 'OauthAuthorization' }),
  errors: AUTHORIZATION_ERRORS,
  async run({ input, caller, context, newId, refuse }, services) {
    const { client, scopes, account_id, session_id } = await checkAuthorization(services, caller, input);
    const { redirect_uri, code_challenge, state = null } = input;
    const { client_id } = client;
    const agreed = {
      grant_id: newId('oauth-grant'),
      client_id,
      user_id: caller.user_id,
      account_id,
      session_id,
      scopes,
    };
    const code = await keepCode(services.db, { ...agreed, redirect_uri, code_challenge }, context.now);
    if (code === null) throw refuse('NOT_IN_A_SESSION');
    return { code, state, redirect_uri };
  },
});

/** Converts an error to the form of RFC 6749 §5.2, with `message` as in every other error. */
const asOauth = (declared: OperationError, error: string): OperationError => ({
  ...declared,
  rest_body: { error, error_description: declared.text, message: declared.text },
  graphql_code: error,
});

const errors = {
  GRANT_TYPE_MISSING: asOauth(badRequest('grant_type is required'), 'invalid_request'),
  GRANT_TYPE_UNKNOWN: asOauth(badRequest('This grant type is not supported'), 'unsupported_grant_type'),
  PARAMETER_MISSING: asOauth(badRequest('A parameter of this grant type is missing'), 'invalid_request'),
  CLIENT_REFUSED: asOauth(unauthorized('Unknown client, or its authentication is wrong'), 'invalid_client'),
  CLIENT_MAY_NOT: asOauth(badRequest('This client may not use this grant type'), 'unauthorized_client'),
  GRANT_REFUSED: asOauth(badRequest('The code or refresh token is invalid, expired or was used'), 'invalid_grant'),
  SCOPE_REFUSED: asOauth(badRequest('The scope is invalid or goes too far'), 'invalid_scope'),
};
type Reason = keyof typeof errors;
const refused = (reason: Reason) => new DomainError(reason);

const text = z.string().max(4096).nullish();
const TokenInput = z
  .object({
    grant_type: text.describe('authorization_code, refresh_token or client_credentials'),
    client_id: text.describe('Here, or as the user of HTTP Basic'),
    client_secret: text.describe('Here, or as the password of HTTP Basic; public clients send none'),
    code: text,
    redirect_uri: text.describe('As it was in the authorization'),
    code_verifier: text.describe('What the code_challenge is the SHA-256 of'),
    refresh_token: text,
    scope: text.describe('Permissions separated by blanks; default: all that were given'),
  })
  .meta({ id: 'IssueOauthTokenInput' });
type Asked = z.output<typeof TokenInput>;

const OauthTokens = z
  .object({
    access_token: z.string().describe('JWT, `lm_` prefix'),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('Seconds'),
    refresh_token: z.string().nullish(),
    scope: z.string(),
  })
  .meta({ id: 'OauthTokens' });

/** The token endpoint of RFC 6749. */
export const issueOauthToken = command({
  name: 'issueOauthToken',
  // Source: spec rulings, "OAuth clients".
  summary: 'Gives an OAuth client its tokens, for a code, a refresh token or its own credentials',
  rest: post('/v1/auth/token', { envelope: 'bare', oauth: true, standard_parameters: true }),
  graphql: { argument: 'input' },
  guard: [publicAccess],
  input: TokenInput,
  output: OauthTokens,
  errors,
  async idempotencyScope({ input, context }, { tokens }) {
    const { claims } = await tokens.verify(input.refresh_token ?? '', context.now);
    const grant_id = claims?.use === 'refresh' ? claims.client?.grant_id : null;
    // Includes the secret, because HTTP Basic is not part of the body that a repetition must match.
    const client = hashToken(`${input.client_id ?? ''} ${input.client_secret ?? ''}`);
    return grant_id ? `grant ${grant_id} ${client}` : null;
  },
  async run({ input, context, act }, services) {
    const asking = { input, context, act, services };
    switch (input.grant_type) {
      case 'authorization_code':
        return tokensForCode(asking);
      case 'refresh_token':
        return tokensForRefresh(asking);
      case 'client_credentials':
        return tokensForClient(asking);
      default:
        throw refused(input.grant_type ? 'GRANT_TYPE_UNKNOWN' : 'GRANT_TYPE_MISSING');
    }
  },
});

interface Asking {
  input: Asked;
  context: RequestContext;
  act: Act;
  services: Services;
}
type Tokens = z.input<typeof OauthTokens>;

/** The client of the request: authenticated by its secret, or a public client named by its id. */
async function clientOf({ input, context, services }: Asking, grant_type: GrantType) {
  const { client_id, client_secret } = input;
  const unpaid = context.units?.refusal();
  // Only a secret authenticates a client at a network without calls.
  if (!client_secret && unpaid) throw unpaid;
  const known = client_id && z.uuid().safeParse(client_id).success;
  const client = known ? await readClientInGroup(services.db, client_id) : null;
  if (client === null) throw refused('CLIENT_REFUSED');
  const presented = client_secret ? hashToken(client_secret) : null;
  if ((presented === null) !== (client.secret_hash === null)) throw refused('CLIENT_REFUSED');
  if (presented !== null && !timingSafeEqual(Buffer.from(presented), Buffer.from(client.secret_hash!))) {
    throw refused('CLIENT_REFUSED');
  }
  // Moves the unit from the network to the client, so that clients behind one address do not share a limit.
  if (presented !== null) await context.units?.moveTo(clientBucket(client.client_id));
  // A disabled client may refresh existing grants but not begin new ones.
  const begins = grant_type !== 'refresh_token';
  if ((begins && !client.enabled) || !client.grant_types.includes(grant_type)) throw refused('CLIENT_MAY_NOT');
  return client;
}

const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;
const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url');

async function tokensForCode(asking: Asking): Promise<Tokens> {
  const { input, context, act, services } = asking;
  const client = await clientOf(asking, 'authorization_code');
  if (!input.code || !input.redirect_uri || !input.code_verifier) throw refused('PARAMETER_MISSING');
  const { now } = context;
  const found = await takeCode(services.db, input.code, now);
  if (found === null) throw refused('GRANT_REFUSED');
  const { code, state } = found;
  if (state === 'reused') {
    await endGrant(asking, code, 'code_reused');
    throw refused('GRANT_REFUSED');
  }
  const right =
    code.client_id === client.client_id &&
    code.redirect_uri === input.redirect_uri &&
    VERIFIER.test(input.code_verifier) &&
    challengeOf(input.code_verifier) === code.code_challenge;
  if (!right || state === 'expired') {
    await dropCode(services.db, input.code);
    throw refused('GRANT_REFUSED');
  }

  const { grant_id, client_id, user_id, account_id, session_id, scopes, ends_at } = code;
  const begin = { type: 'oauth_grant:begin', grant_id, client_id, user_id, account_id, session_id, scopes } as const;
  try {
    await act(oauthGrant, oauthGrantStream(grant_id), { ...begin, ends_at: new Date(ends_at).toISOString() });
  } catch (error) {
    // A concurrent call has exchanged the code.
    throw error instanceof DomainError && error.reason === 'GRANT_OVER' ? refused('GRANT_REFUSED') : error;
  }
  const signed = await sign(asking, code, scopes, { refreshable: client.grant_types.includes('refresh_token') });
  await openGrant(services.db, code, signed.refresh && hashJti(signed.refresh.jti), now);
  await endSurplusGrants(asking, code);
  // The session, or the client, may have ended since the user agreed.
  if ((await livingGrant(services.db, grant_id, now)) === null) throw refused('GRANT_REFUSED');
  return shown(signed, scopes, now);
}

/**
 * Exchanges a refresh token, which is valid once; reuse of an exchanged one ends the grant. A repetition of an
 * unanswered call gets the same answer, since the new token's id derives from its Idempotency-Key.
 */
async function tokensForRefresh(asking: Asking): Promise<Tokens> {
  const { input, context, services } = asking;
  const client = await clientOf(asking, 'refresh_token');
  if (!input.refresh_token) throw refused('PARAMETER_MISSING');
  const { now } = context;
  const { claims, failure } = await services.tokens.verify(input.refresh_token, now);
  const grant_id = claims?.client?.grant_id;
  if (failure !== null || claims.use !== 'refresh' || !grant_id || claims.client?.client_id !== client.client_id) {
    throw refused('GRANT_REFUSED');
  }
  const grant = await livingGrant(services.db, grant_id, now);
  if (grant === null || grant.current === null) throw refused('GRANT_REFUSED');
  const jti = context.idempotency_seed === null ? undefined : newId(context, `refresh ${claims.jti}`);
  const presented = hashJti(claims.jti);
  const repeated = jti !== undefined && hashJti(jti) === grant.current;
  if (presented !== grant.current && !repeated) {
    await endGrant(asking, grant, 'refresh_token_reused');
    throw refused('GRANT_REFUSED');
  }
  const scopes = grantedScopes(input.scope, grant.scopes);
  const signed = await sign(asking, grant, scopes, { refreshable: true, jti });
  const moved = repeated || (await rotateGrant(services.db, grant_id, presented, hashJti(signed.refresh!.jti), now));
  // A concurrent call has exchanged the token.
  if (!moved) throw refused('GRANT_REFUSED');
  return shown(signed, scopes, now);
}

/** Tokens for the client's own account, without a user. */
async function tokensForClient(asking: Asking): Promise<Tokens> {
  const { input, context, services } = asking;
  const { client_id, account_id, scopes: registered } = await clientOf(asking, 'client_credentials');
  if (account_id === null) throw refused('CLIENT_MAY_NOT');
  const scopes = grantedScopes(input.scope, registered);
  const { now } = context;
  const access = await services.tokens.sign(
    { sub: client_id, account_id, session_id: null, use: 'access', client: { client_id, grant_id: null, scopes } },
    now,
    services.settings.auth.access_token_expiration,
  );
  return shown({ access, refresh: null }, scopes, now);
}

/** @throws DomainError for a scope outside the grant */
function grantedScopes(scope: string | null | undefined, signed: readonly string[]): string[] {
  const wanted = scope ? scope.split(' ').filter(Boolean) : [...signed];
  if (wanted.length === 0 || wanted.some((name) => !signed.includes(name))) throw refused('SCOPE_REFUSED');
  return signed.filter((name) => wanted.includes(name));
}

interface Given {
  access: SignedToken;
  refresh: SignedToken | null;
}

async function sign(
  { context, services }: Asking,
  { grant_id, client_id, user_id, account_id, scopes: agreed, ends_at }: Grant,
  scopes: readonly string[],
  { refreshable, jti }: { refreshable: boolean; jti?: string | undefined },
): Promise<Given> {
  const { tokens, settings } = services;
  const left = ends_at - context.now;
  const claims = { sub: user_id, account_id, session_id: null };
  const client = { client_id, grant_id };
  const lifetime = Math.min(settings.auth.access_token_expiration, left);
  return {
    access: await tokens.sign({ ...claims, use: 'access', client: { ...client, scopes } }, context.now, lifetime),
    refresh: refreshable
      ? await tokens.sign({ ...claims, use: 'refresh', client: { ...client, scopes: agreed }, jti }, context.now, left)
      : null,
  };
}

const shown = ({ access, refresh }: Given, scopes: readonly string[], now: number): Tokens => ({
  access_token: access.token,
  token_type: 'Bearer',
  expires_in: Math.max(0, Math.floor((access.expires_at - now) / 1000)),
  ...(refresh && { refresh_token: refresh.token }),
  scope: scopes.join(' '),
});

/** Ends a grant: revokes it before the append, so that no crash leaves a possibly stolen grant valid. */
async function endGrant({ act, services }: Asking, grant: Grant, reason: GrantEnd): Promise<void> {
  const { grant_id, client_id, user_id, account_id } = grant;
  await killGrant(services.db, grant_id);
  await act(oauthGrant, oauthGrantStream(grant_id), {
    type: 'oauth_grant:end',
    ...{ grant_id, client_id, user_id, account_id, reason },
  });
  await services.access.announce({ credential_id: grant_id });
}
