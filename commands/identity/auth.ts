import { z } from 'zod';
import { badRequest, command, firstParty, post, publicAccess, unauthorized } from '../../app/operation';
import { isConnected, logIn } from '../../services/identity/logins';
import { ExchangeTokenInput, identify, providerErrors } from '../../services/identity/provider-logins';
import type { Services } from '../../app/services';
import { mintWsToken, type SessionTokens } from '../../access/authentication/tokens/session-tokens';
import { endSession, revokeExcessSessions } from '../../services/identity/session-revocation';
import { accountAtLogin, openSession, refreshSession, sessionOf } from '../../services/identity/sessions';

const dateTime = z.string().meta({ format: 'date-time' });
const TokenResult = z
  .object({
    token: z.string().describe('Access JWT, `lm_` prefix'),
    refresh_token: z.string(),
    expires_at: dateTime.describe('Of the access token'),
    is_new_user: z.boolean(),
    has_account: z.boolean(),
  })
  .meta({ id: 'TokenResult' });
const LogoutResult = z.object({ success: z.boolean() }).meta({ id: 'LogoutResult' });
export const WsTokenResult = z.object({ ws_token: z.string(), expires_at: dateTime }).meta({ id: 'WsTokenResult' });
const RefreshTokenInput = z.object({ refresh_token: z.string().min(1).max(4096) });

const errors = { REFUSED_REFRESH_TOKEN: unauthorized('Invalid or expired refresh token') };

const instant = (ms: number) => new Date(ms).toISOString();

async function resultOf(
  { db }: Pick<Services, 'db'>,
  { access, refresh, user_id }: SessionTokens,
  is_new_user: boolean,
): Promise<z.output<typeof TokenResult>> {
  const [membership] = await db.query('select 1 from account_members where user_id = $1 limit 1', [user_id]);
  return {
    token: access.token,
    refresh_token: refresh.token,
    expires_at: instant(access.expires_at),
    is_new_user,
    has_account: membership !== undefined,
  };
}

export const exchangeToken = command({
  name: 'exchangeToken',
  // Source: spec doc1 §5.3 rule 7, doc2 §2.4.
  summary: "Logs in with a provider's access token: finds or makes the user, and opens a session",
  rest: post('/v1/auth/token/exchange', { envelope: 'bare' }),
  graphql: { argument: 'input' },
  guard: [publicAccess],
  input: ExchangeTokenInput,
  output: TokenResult,
  errors: { ...providerErrors, LOGIN_REMOVED: unauthorized('This login was removed') },
  async run({ input, context, act, refuse, newId }, services) {
    const { provider, said } = await identify(services, input, refuse);
    const known = await logIn({ act, context, newId }, services, provider, said, input.access_token);
    const { user_id, created, login_connection_id } = known;
    const account_id = await accountAtLogin(services, user_id);
    const login = { user_id, account_id, provider, login_connection_id };
    const opened = await openSession({ act, context }, services, login);
    // The login may have been removed, and its sessions ended, before this session was stored.
    if (!(await isConnected(services, user_id, login_connection_id))) {
      await endSession(act, services, opened.session_id, 'revoked', { step: 'end' });
      throw refuse('LOGIN_REMOVED');
    }
    await revokeExcessSessions(act, services, user_id);
    return resultOf(services, opened, created);
  },
});

export const refreshToken = command({
  name: 'refreshToken',
  // Source: spec doc1 §5.3.
  summary: 'Trades a refresh token for a new access token and a new refresh token',
  rest: post('/v1/auth/refresh', { envelope: 'bare' }),
  guard: [publicAccess],
  input: RefreshTokenInput,
  output: TokenResult,
  errors,
  async idempotencyScope({ input, context }, { tokens }) {
    const { claims } = await tokens.verify(input.refresh_token, context.now);
    return claims?.use === 'refresh' && claims.session_id !== null ? `session ${claims.session_id}` : null;
  },
  async run({ input, context, act }, services) {
    return resultOf(services, await refreshSession({ act, context }, services, input.refresh_token), false);
  },
});

export const logout = command({
  name: 'logout',
  // Source: spec doc1 §5.3.
  summary: 'Ends the session of a refresh token, also of an expired one',
  rest: post('/v1/auth/logout', { envelope: 'bare' }),
  guard: [publicAccess],
  input: RefreshTokenInput,
  output: LogoutResult,
  errors,
  async run({ input, context, act }, services) {
    await endSession(act, services, await sessionOf(services, input.refresh_token, context.now), 'logout');
    return { success: true };
  },
});

export const logoutSession = command({
  name: 'logoutSession',
  // Source: spec doc2 §4.3.
  summary: "Ends the caller's own session",
  rest: post('/v1/auth/logout-session', { envelope: 'bare' }),
  guard: [firstParty],
  input: z.object({}),
  output: LogoutResult,
  errors: { NO_SESSION: badRequest('An API key has no session to end') },
  async run({ caller, act, refuse }, services) {
    if (caller.kind !== 'jwt' || caller.credential_id === null) throw refuse('NO_SESSION');
    await endSession(act, services, caller.credential_id, 'logout');
    return { success: true };
  },
});

export const issueWsToken = command({
  name: 'issueWsToken',
  // Source: spec doc1 §5.3.
  summary: 'Mints a short-lived token for the WebSocket upgrade alone',
  rest: post('/v1/auth/ws-token'),
  guard: [firstParty],
  input: z.object({}),
  output: WsTokenResult,
  async run({ caller, context }, services) {
    const { token, expires_at } = await mintWsToken(services, caller, context.now);
    return { ws_token: token, expires_at: instant(expires_at) };
  },
});
