import { z } from 'zod';
import { CONTEXTS, wellFormed } from '../../access/authentication/contexts';
import { hashToken } from '../../access/authentication/keys';
import { command, forbidden, popoutOnly, post, publicAccess, unauthorized } from '../../app/operation';
import { popoutCookie } from '../../access/authentication/tokens/popout-cookie';
import { findPopoutToken } from '../../access/authentication/tokens/popout-tokens';
import { mintWsToken } from '../../access/authentication/tokens/session-tokens';
import { WsTokenResult } from '../identity/auth';

/** Lifetime of a popout session, in which the page works without its raw token. Source: spec doc1 §8. */
const SESSION_MS = 15 * 60_000;

const PopoutExchangeResult = z
  .object({
    token: z.string().describe('The session, also set as a cookie that scripts cannot read'),
    expires_at: z.string().meta({ format: 'date-time' }),
    account_id: z.uuid(),
  })
  .meta({ id: 'PopoutExchangeResult' });

/** Public, because possession of a valid token is the authorization. Source: spec doc1 §5.5. */
export const exchangePopoutToken = command({
  name: 'exchangePopoutToken',
  summary: 'Trades a popout token for a session of 15 minutes, for the page that was opened with it',
  rest: post('/v1/auth/popout/exchange'),
  guard: [publicAccess],
  input: z.object({ token: z.string().max(4096) }),
  output: PopoutExchangeResult,
  errors: { REFUSED_POPOUT_TOKEN: unauthorized('Invalid or expired popout token') },
  async run({ input: { token }, context, refuse }, { db, settings, tokens }) {
    if (!token.startsWith(CONTEXTS.popout.prefix) || !wellFormed('popout', token)) throw refuse('REFUSED_POPOUT_TOKEN');
    const { caller } = await findPopoutToken(db, hashToken(token), context.now);
    if (caller === null) throw refuse('REFUSED_POPOUT_TOKEN');
    const { credential_id, account_id } = caller;
    const lifetime = Math.min(SESSION_MS, (caller.expires_at ?? Infinity) - context.now);
    const claims = {
      sub: credential_id!,
      account_id,
      session_id: null,
      popout_id: credential_id,
      use: 'access',
    } as const;
    const session = await tokens.sign(claims, context.now, lifetime);
    (context.response_headers ??= {})['set-cookie'] = popoutCookie(session.token, {
      max_age_s: SESSION_MS / 1000,
      secure: settings.env !== 'development',
    });
    return { token: session.token, expires_at: new Date(session.expires_at).toISOString(), account_id: account_id! };
  },
});

/** Mints a ws token that ends with the popout token. Source: spec doc1 §5.5 rule 6. */
export const issuePopoutWsToken = command({
  name: 'issuePopoutWsToken',
  summary: 'Mints a short-lived token for the WebSocket upgrade of a popout page',
  rest: post('/v1/auth/popout/ws-token'),
  guard: [popoutOnly],
  input: z.object({}),
  output: WsTokenResult,
  errors: { NO_POPOUT_SESSION: forbidden('This action requires a popout session') },
  async run({ caller, context, refuse }, services) {
    if (caller.popout_session !== true) throw refuse('NO_POPOUT_SESSION');
    const minted = await mintWsToken(services, { ...caller, user_id: caller.credential_id }, context.now);
    return { ws_token: minted.token, expires_at: new Date(minted.expires_at).toISOString() };
  },
});
