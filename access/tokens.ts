import { createHash, randomUUID } from 'node:crypto';
import { exportJWK, errors, generateKeyPair, importJWK, jwtVerify, SignJWT, type CryptoKey, type JWK } from 'jose';
import { LOCKS } from '../engines/locks/port';
import type { Database } from '../engines/postgres/port';
import type { SecretBox } from '../engines/secrets/port';
import { clientMembers, clientOf, type ClientClaims } from './oauth-claims';

/** What a JWT may be used for: any request, the WebSocket upgrade alone, or a refresh alone. Source: spec doc1 §5.3. */
export type TokenUse = 'access' | 'ws' | 'refresh';

export interface Claims {
  /** User id. */
  sub: string;
  account_id: string | null;
  session_id: string | null;
  /** The popout token whose session it is, where it is one; `sub` is then that token too, and no user. */
  popout_id?: string | null;
  /** The OAuth client that it was given to. */
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

/** What a token turned out to be. Expired is said only of a token that we signed. */
export type Verified =
  { claims: Claims; failure: null } | { claims: Claims; failure: 'expired' } | { claims: null; failure: 'invalid' };

/** An Ed25519 public key as RFC 8037 writes it. */
export interface PublicJwk {
  kid: string;
  kty: string;
  crv: string;
  x: string;
  alg: string;
  use: string;
}

export interface Tokens {
  /** `now` in Unix milliseconds; without a `jti` it gets a random one. */
  sign(
    claims: Omit<Claims, 'jti' | 'iat' | 'exp'> & { jti?: string | undefined },
    now: number,
    lifetime_ms: number,
  ): Promise<SignedToken>;
  verify(token: string, now: number): Promise<Verified>;
  /** The public keys, for `/v1/.well-known/jwks.json`. */
  jwks(): { keys: PublicJwk[] };
}

/** JWT ids are stored by hash, like every other credential. */
export const hashJti = (jti: string): string => createHash('sha256').update(jti).digest('hex');

const ALGORITHM = 'EdDSA';
/** What the secret box is told that these secrets are for. */
/** What the signing keys are sealed for. */
export const SIGNING_KEY = 'jwt-signing-key';
const RELOAD_AFTER_MS = 1000;

interface LoadedKey {
  kid: string;
  public_jwk: PublicJwk;
  verify: CryptoKey;
}

/**
 * Signs and verifies JWTs by Ed25519 keys that all nodes of one database share, sealed under the master keys. The first
 * start makes a key; the newest one signs. A `kid` that is not known is looked up once more, for a key that another
 * node has made.
 */
export async function createTokens(deps: { db: Database; secrets: SecretBox }): Promise<Tokens> {
  const keys = new Map<string, LoadedKey>();
  let signer: { kid: string; key: CryptoKey };
  let loaded_at = 0;

  async function load(): Promise<void> {
    const rows = await deps.db.query<{ kid: string; public_jwk: PublicJwk; private_sealed: string }>(
      'select kid, public_jwk, private_sealed from signing_keys order by created_at, kid',
    );
    for (const { kid, public_jwk } of rows) {
      if (!keys.has(kid))
        keys.set(kid, { kid, public_jwk, verify: (await importJWK(public_jwk, ALGORITHM)) as CryptoKey });
    }
    const newest = rows.at(-1);
    if (newest) {
      const jwk = JSON.parse(deps.secrets.open(newest.private_sealed, SIGNING_KEY).toString()) as JWK;
      signer = { kid: newest.kid, key: (await importJWK(jwk, ALGORITHM)) as CryptoKey };
    }
    loaded_at = Date.now();
  }

  await deps.db.transaction(async (tx) => {
    // Nodes that start together make one key, not several.
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.signing_keys]);
    const [present] = await tx.query('select 1 from signing_keys limit 1');
    if (present) return;
    const pair = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
    const kid = randomUUID();
    const { kty, crv, x } = await exportJWK(pair.publicKey);
    const public_jwk = { kid, kty, crv, x, alg: ALGORITHM, use: 'sig' };
    await tx.query('insert into signing_keys (kid, public_jwk, private_sealed) values ($1, $2, $3)', [
      kid,
      JSON.stringify(public_jwk),
      deps.secrets.seal(JSON.stringify(await exportJWK(pair.privateKey)), SIGNING_KEY),
    ]);
  });
  await load();

  async function keyOf(kid: string | undefined): Promise<CryptoKey> {
    if (kid !== undefined && !keys.has(kid) && Date.now() - loaded_at > RELOAD_AFTER_MS) await load();
    const key = kid === undefined ? undefined : keys.get(kid);
    if (key === undefined) throw new errors.JWSSignatureVerificationFailed('unknown key');
    return key.verify;
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
      const jwt = await new SignJWT(claims)
        .setProtectedHeader({ alg: ALGORITHM, kid: signer.kid, typ: 'JWT' })
        .setSubject(sub)
        .setJti(jti)
        .setIssuedAt(iat)
        .setExpirationTime(exp)
        .sign(signer.key);
      return { token: `lm_${jwt}`, jti, expires_at: exp * 1000 };
    },

    async verify(token, now) {
      try {
        const { payload } = await jwtVerify(token.slice('lm_'.length), (header) => keyOf(header.kid), {
          algorithms: [ALGORITHM],
          currentDate: new Date(now),
          requiredClaims: ['sub', 'jti', 'iat', 'exp', 'use'],
        });
        return { claims: claimsOf(payload), failure: null };
      } catch (error) {
        // jose checks the signature before the claims, so the payload of an expired token is one that we signed.
        if (error instanceof errors.JWTExpired) return { claims: claimsOf(error.payload), failure: 'expired' };
        if (error instanceof errors.JOSEError || error instanceof TypeError)
          return { claims: null, failure: 'invalid' };
        throw error;
      }
    },

    jwks: () => ({ keys: [...keys.values()].map((key) => key.public_jwk) }),
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
