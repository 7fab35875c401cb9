import { createHash, randomUUID } from 'node:crypto';
import { errors, jwtVerify, SignJWT, type CryptoKey } from 'jose';
import { clientMembers, clientOf, type ClientClaims } from './oauth-claims';
import { ALGORITHM, openSigningKeys, type PublicJwk } from './signing-keys';

/** Use of a JWT: any request, only the WebSocket upgrade, or only a refresh. Source: spec doc1 §5.3. */
export type TokenUse = 'access' | 'ws' | 'refresh';

export interface Claims {
  /** User id. */
  sub: string;
  account_id: string | null;
  session_id: string | null;
  /** The popout token of a popout session; `sub` is then that token's id and not a user's. */
  popout_id?: string | null;
  /** The OAuth client that holds the token. */
  client?: ClientClaims | null;
  use: TokenUse;
  jti: string;
  /** Unix seconds. */
  iat: number;
  exp: number;
}

export interface SignedToken {
  /** `lm_` and the JWT. */
  token: string;
  jti: string;
  /** Unix milliseconds, whole seconds. */
  expires_at: number;
}

/** Result of verifying a token; `expired` only for a token with a valid signature. */
export type Verified =
  { claims: Claims; failure: null } | { claims: Claims; failure: 'expired' } | { claims: null; failure: 'invalid' };

export interface Tokens {
  /** `now` in Unix milliseconds; the default `jti` is random. */
  sign(
    claims: Omit<Claims, 'jti' | 'iat' | 'exp'> & { jti?: string | undefined },
    now: number,
    lifetime_ms: number,
  ): Promise<SignedToken>;
  verify(token: string, now: number): Promise<Verified>;
  /** The public keys, for `/v1/.well-known/jwks.json`. */
  jwks(): Promise<{ keys: PublicJwk[] }>;
  /** Drops the cached keys, because they may have ended; the next token reads them again. */
  forget(): void;
}

/** JWT ids are stored as hashes, like every other credential. */
export const hashJti = (jti: string): string => createHash('sha256').update(jti).digest('hex');

/** Signs and verifies JWTs with the keys that all nodes share (signing-keys.ts). */
export async function createTokens(deps: Parameters<typeof openSigningKeys>[0]): Promise<Tokens> {
  const keys = await openSigningKeys(deps);

  async function keyOf({ kid }: { kid?: unknown }): Promise<CryptoKey> {
    const key = typeof kid === 'string' ? await keys.verifier(kid) : undefined;
    if (key === undefined) throw new errors.JWSSignatureVerificationFailed('unknown key');
    return key;
  }

  return {
    async sign({ sub, account_id, session_id, popout_id, client, use, jti = randomUUID() }, now, lifetime_ms) {
      const iat = Math.floor(now / 1000);
      const exp = Math.floor((now + lifetime_ms) / 1000);
      const claims = {
        use,
        ...(account_id ? { account_id } : {}),
        ...(session_id ? { session_id } : {}),
        ...(popout_id ? { popout_id } : {}),
        ...(client ? clientMembers(client) : {}),
      };
      const { kid, key } = await keys.signer();
      const jwt = await new SignJWT(claims)
        .setProtectedHeader({ alg: ALGORITHM, kid, typ: 'JWT' })
        .setSubject(sub)
        .setJti(jti)
        .setIssuedAt(iat)
        .setExpirationTime(exp)
        .sign(key);
      return { token: `lm_${jwt}`, jti, expires_at: exp * 1000 };
    },

    async verify(token, now) {
      try {
        const { payload } = await jwtVerify(token.slice('lm_'.length), keyOf, {
          algorithms: [ALGORITHM],
          currentDate: new Date(now),
          requiredClaims: ['sub', 'jti', 'iat', 'exp', 'use'],
        });
        return { claims: claimsOf(payload), failure: null };
      } catch (error) {
        // jose checks the signature before the claims, so an expired token's payload was signed by us.
        if (error instanceof errors.JWTExpired) return { claims: claimsOf(error.payload), failure: 'expired' };
        if (error instanceof errors.JOSEError || error instanceof TypeError)
          return { claims: null, failure: 'invalid' };
        throw error;
      }
    },

    jwks: async () => ({ keys: await keys.known() }),
    forget: keys.forget,
  };
}

function claimsOf(payload: Record<string, unknown>): Claims {
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  return {
    sub: String(payload.sub),
    account_id: text(payload.account_id),
    session_id: text(payload.session_id),
    popout_id: text(payload.popout_id),
    client: clientOf(payload),
    use: payload.use as TokenUse,
    jti: String(payload.jti),
    iat: Number(payload.iat),
    exp: Number(payload.exp),
  };
}
