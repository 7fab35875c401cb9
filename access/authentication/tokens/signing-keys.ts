import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose';
import { LOCKS } from '../../../engines/locks/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { SecretBox } from '../../../privacy/secrets/port';

export const ALGORITHM = 'EdDSA';
/** Purpose under which the signing keys are sealed. */
export const SIGNING_KEY = 'jwt-signing-key';

/** An Ed25519 public key as RFC 8037 writes it. */
export interface PublicJwk {
  kid: string;
  kty: string;
  crv: string;
  x: string;
  alg: string;
  use: string;
}

/** Maximum age of a node's cached keys when it signs. */
const KNOWN_FOR_MS = 10_000;
/** Minimum interval between reads for unknown key ids, so that made-up ids cost no query each. */
const ASKED_AGAIN_AFTER_MS = 1000;
/** Delay before a new key signs, so that every node has read it. */
const SIGNS_AFTER_MS = 60_000;
/** Value of `looked_at` that forces the next read. */
const FORGOTTEN = 0;
/** Allowed clock difference between nodes. */
const SLACK_MS = 60_000;

interface KnownKey {
  public_jwk: PublicJwk;
  verify: CryptoKey;
  sealed: string;
  /** By this node's clock. */
  signs_from: number;
}

export interface SigningKeys {
  /** The current signing key. */
  signer(): Promise<{ kid: string; key: CryptoKey }>;
  /** Undefined for an unknown id, and for a key whose last token has expired. */
  verifier(kid: string): Promise<CryptoKey | undefined>;
  /** Public halves of all keys that sign, will sign, or still verify. */
  known(): Promise<PublicJwk[]>;
  /** Drops the cached keys; the next call reads them again. */
  forget(): void;
}

type Deps = { db: Database; secrets: SecretBox };

/**
 * Opens the Ed25519 keys that all nodes of one database share, sealed under the master keys; the first start creates
 * one. A node reads the keys again when its cache is older than ten seconds, and for an unknown id. A key exists for a
 * minute before it signs, so that no node refuses what another has signed.
 */
export async function openSigningKeys(deps: Deps & { known_for_ms?: number }): Promise<SigningKeys> {
  const { db, secrets, known_for_ms = KNOWN_FOR_MS } = deps;
  let keys = new Map<string, KnownKey>();
  let looked_at = 0;
  let looking: Promise<void> | undefined;
  /** Raised by `forget`: an earlier read does not count. */
  let generation = 0;
  let opened: { kid: string; key: CryptoKey } | undefined;

  async function look(): Promise<void> {
    const began = generation;
    const rows = await db.query<{ kid: string; public_jwk: PublicJwk; private_sealed: string; signs_in: number }>(
      `select kid, public_jwk, private_sealed,
         (extract(epoch from signs_from - clock_timestamp()) * 1000)::float8 as signs_in
       from signing_keys where verifies_until is null or verifies_until > clock_timestamp() order by signs_from, kid`,
      [],
      'signing-keys',
    );
    const now = Date.now();
    const next = new Map<string, KnownKey>();
    for (const { kid, public_jwk, private_sealed, signs_in } of rows) {
      const known = keys.get(kid);
      next.set(kid, {
        public_jwk,
        verify: known?.verify ?? ((await importJWK(public_jwk, ALGORITHM)) as CryptoKey),
        sealed: private_sealed,
        signs_from: now + signs_in,
      });
    }
    keys = next;
    looked_at = began === generation ? now : FORGOTTEN;
  }
  function lookOnce(): Promise<void> {
    const once = look().finally(() => {
      if (looking === once) looking = undefined;
    });
    return once;
  }
  /** Keeps the cached keys while the database does not answer. */
  async function freshen(): Promise<void> {
    if (Date.now() - looked_at > known_for_ms) await lookAgain().catch(() => undefined);
  }
  const lookAgain = (): Promise<void> => (looking ??= lookOnce());

  await db.transaction(async (tx) => {
    // Nodes that start at the same time create one key.
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.signing_keys]);
    const [present] = await tx.query('select 1 from signing_keys limit 1');
    if (!present) await makeKey(tx, secrets, 0);
  });
  await look();

  return {
    async signer() {
      await freshen();
      const now = Date.now();
      const [kid, key] = [...keys].filter(([, { signs_from }]) => signs_from <= now).at(-1) ?? [];
      if (kid === undefined || key === undefined) throw new Error('there is no signing key');
      if (opened?.kid !== kid) {
        const jwk = JSON.parse(secrets.open(key.sealed, SIGNING_KEY).toString()) as JWK;
        opened = { kid, key: (await importJWK(jwk, ALGORITHM)) as CryptoKey };
      }
      return opened;
    },
    async verifier(kid) {
      if (looked_at === FORGOTTEN || (!keys.has(kid) && Date.now() - looked_at > ASKED_AGAIN_AFTER_MS))
        await lookAgain();
      // A replaced key must also end on a node that never signs.
      else await freshen();
      return keys.get(kid)?.verify;
    },
    async known() {
      await freshen();
      return [...keys.values()].map(({ public_jwk }) => public_jwk);
    },
    forget() {
      generation += 1;
      looked_at = FORGOTTEN;
      looking = undefined;
    },
  };
}

export interface RotatedKey {
  kid: string;
  /** RFC 3339. */
  signs_from: string;
  /** When the previous keys stop verifying. */
  others_verify_until: string;
}

/**
 * Creates a key that signs a minute from now, on every node; the previous keys verify until their last tokens have
 * expired. A repetition before it signs returns the pending key.
 */
export async function rotateSigningKey(
  { db, secrets }: Deps,
  longest_token_ms: number,
  signs_after_ms = SIGNS_AFTER_MS,
): Promise<RotatedKey> {
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.signing_keys]);
    await tx.query('delete from signing_keys where verifies_until < clock_timestamp()');
    const coming = 'select kid from signing_keys where signs_from > clock_timestamp()';
    const [on_its_way] = await tx.query<{ kid: string }>(coming);
    const kid = on_its_way?.kid ?? (await makeKey(tx, secrets, signs_after_ms));
    const after = signs_after_ms + longest_token_ms + SLACK_MS;
    await tx.query(
      `update signing_keys set verifies_until = clock_timestamp() + make_interval(secs => $2 / 1000.0)
       where kid <> $1 and verifies_until is null`,
      [kid, after],
    );
    const [row] = await tx.query<{ signs_from: string; others: string }>(
      `select k.signs_from, (select max(verifies_until) from signing_keys) as others
       from signing_keys k where kid = $1`,
      [kid],
    );
    return { kid, signs_from: row!.signs_from, others_verify_until: row!.others };
  });
}

/**
 * Replaces keys that may have leaked: the new key signs at once, and the previous ones stop verifying on every node
 * within the second that a revocation takes. Sessions must log in again; keys and bound tokens, which are not signed,
 * stay valid.
 */
export async function replaceSigningKeys({ db, secrets }: Deps): Promise<{ kid: string }> {
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.signing_keys]);
    await tx.query('delete from signing_keys');
    const kid = await makeKey(tx, secrets, 0);
    await tx.query('insert into revocations default values');
    return { kid };
  });
}

async function makeKey(tx: Queryable, secrets: SecretBox, signs_after_ms: number): Promise<string> {
  const pair = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
  const kid = randomUUID();
  const { kty, crv, x } = await exportJWK(pair.publicKey);
  const public_jwk = { kid, kty, crv, x, alg: ALGORITHM, use: 'sig' };
  await tx.query(
    `insert into signing_keys (kid, public_jwk, private_sealed, signs_from)
     values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4 / 1000.0))`,
    [
      kid,
      JSON.stringify(public_jwk),
      secrets.seal(JSON.stringify(await exportJWK(pair.privateKey)), SIGNING_KEY),
      signs_after_ms,
    ],
  );
  return kid;
}
