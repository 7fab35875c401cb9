import type { Database } from '../../../engines/postgres/port';
import type { Caller } from '../caller';
import type { Services } from '../../../app/services';
import { hashJti, type SignedToken } from './jwt';

/** Tokens of a session, as its client receives them. */
export interface SessionTokens {
  session_id: string;
  user_id: string;
  access: SignedToken;
  refresh: SignedToken;
}

export type Signing = Pick<Services, 'tokens' | 'settings'>;

/** Claims about an active session. */
interface Open {
  session_id: string;
  user_id: string;
  account_id: string | null;
  ends_at: number;
}

/** Signs an access token, which ends with its session at the latest. */
export const signAccess = (
  { tokens, settings }: Signing,
  { session_id, user_id, account_id, ends_at }: Open,
  now: number,
) =>
  tokens.sign(
    { sub: user_id, account_id, session_id, use: 'access' },
    now,
    Math.min(settings.auth.access_token_expiration, ends_at - now),
  );

/**
 * Signs both tokens of a session.
 * @param refresh_jti derives from the call, so that its repetition gets the same refresh token
 */
export async function signPair(
  services: Signing,
  open: Open,
  now: number,
  refresh_jti?: string,
): Promise<SessionTokens> {
  const { session_id, user_id, account_id, ends_at } = open;
  const claims = { sub: user_id, account_id, session_id, use: 'refresh', jti: refresh_jti } as const;
  const access = await signAccess(services, open, now);
  const refresh = await services.tokens.sign(claims, now, ends_at - now);
  return { session_id, user_id, access, refresh };
}

/**
 * Mints a token for the WebSocket upgrade alone, which ends with its minter. Source: spec doc1 §5.3 rule 4, rulings "ws
 * tokens".
 */
export async function mintWsToken(
  services: Signing & { db: Pick<Database, 'query'> },
  caller: Pick<Caller, 'kind' | 'account_id' | 'credential_id'> & { user_id: string },
  now: number,
): Promise<SignedToken> {
  const signed = await services.tokens.sign(
    { sub: caller.user_id, account_id: caller.account_id, session_id: null, use: 'ws' },
    now,
    services.settings.auth.ws_token_expiration,
  );
  await services.db.query(
    `insert into ws_tokens (jti_hash, parent_kind, parent_id, expires_at)
     values ($1, $2, $3, to_timestamp($4 / 1000.0))`,
    [hashJti(signed.jti), caller.kind === 'jwt' ? 'session' : caller.kind, caller.credential_id, signed.expires_at],
  );
  return signed;
}
