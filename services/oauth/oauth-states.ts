import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../../engines/postgres/port';
import type { SecretBox } from '../../privacy/secrets/port';
import type { GrantKind } from '../../vendors/oauth/port';

/** Purpose of a login at a vendor; ends with the exchange, or after ten minutes. Source: spec doc2 §4.2. */
export interface OAuthState {
  user_id: string;
  /** Null for a connection of the installation itself. */
  account_id: string | null;
  platform: string;
  kind: GrantKind;
  /** Owner of the app that the login uses. */
  app: 'system' | 'account';
  client_id: string;
  return_to: string;
}

/** A state that this request has redeemed. */
export interface RedeemedState extends OAuthState {
  state_hash: string;
  verifier: string;
  /** Set when an earlier attempt of the same request had exchanged the code, and died. */
  connection_id: string | null;
}

const LIFETIME = "interval '10 minutes'";
/** Maximum of pending logins per user; the oldest are deleted first. */
const MAX_OF_ONE = 20;

export const oauthStateContext = (state_hash: string): string => `oauth-state ${state_hash}`;
const hashOf = (state: string): string => createHash('sha256').update(state).digest('hex');

interface OAuthStates {
  db: Database;
  secrets: SecretBox;
}

/** Begins a login at a vendor. The state is shown once; the verifier never leaves the server. */
export async function beginOAuth(
  { db, secrets }: OAuthStates,
  begun: OAuthState,
): Promise<{ state: string; challenge: string }> {
  const state = randomBytes(32).toString('base64url');
  const verifier = randomBytes(48).toString('base64url');
  const state_hash = hashOf(state);
  const { user_id, account_id, platform, kind, app, client_id, return_to } = begun;
  const sealed = secrets.seal(verifier, oauthStateContext(state_hash));
  await db.transaction(async (tx) => {
    await tx.query(
      `insert into oauth_states (state_hash, user_id, account_id, platform, kind, app, client_id, return_to, sealed,
                                 expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + ${LIFETIME})`,
      [state_hash, user_id, account_id, platform, kind, app, client_id, return_to, sealed],
      'oauth-state-write',
    );
    await tx.query(
      `delete from oauth_states where user_id = $1 and state_hash in (
         select state_hash from oauth_states where user_id = $1 order by created_at desc, state_hash offset $2)`,
      [user_id, MAX_OF_ONE],
      'oauth-state-bound',
    );
  });
  return { state, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

/**
 * Redeems a state for one request, and again for its repetition under the same `Idempotency-Key`. Null for a state that
 * is unknown, expired, used, or of another user.
 */
export async function redeemState(
  { db, secrets }: OAuthStates,
  asked: { state: string; user_id: string; platform: string; request: string },
): Promise<RedeemedState | null> {
  const state_hash = hashOf(asked.state);
  const [row] = await db.query<OAuthState & Record<string, unknown>>(
    `update oauth_states set used_by = $4
     where state_hash = $1 and user_id = $2 and platform = $3 and expires_at > clock_timestamp()
       and (used_by is null or used_by = $4)
     returning user_id, account_id, platform, kind, app, client_id, return_to, sealed, connection_id`,
    [state_hash, asked.user_id, asked.platform, asked.request],
    'oauth-state-redeem',
  );
  if (row === undefined) return null;
  const { sealed, connection_id, ...begun } = row;
  const verifier = secrets.open(sealed as string, oauthStateContext(state_hash)).toString();
  return { ...(begun as OAuthState), state_hash, verifier, connection_id: connection_id as string | null };
}

/** Purpose of an unexpired state, for judging guards before it is redeemed; null for an unknown one. */
export async function readState(
  db: Pick<Database, 'query'>,
  asked: { state: string; user_id: string; platform: string },
): Promise<OAuthState | null> {
  const [row] = await db.query<OAuthState & Record<string, unknown>>(
    `select user_id, account_id, platform, kind, app, client_id, return_to from oauth_states
     where state_hash = $1 and user_id = $2 and platform = $3 and expires_at > clock_timestamp()`,
    [hashOf(asked.state), asked.user_id, asked.platform],
    'oauth-state-read',
  );
  return row ?? null;
}

/** Deletes states an hour after their expiry. Returns the number deleted. */
export async function sweepStates(db: Pick<Database, 'query'>): Promise<number> {
  const rows = await db.query(
    "delete from oauth_states where expires_at < now() - interval '1 hour' returning 1 as one",
  );
  return rows.length;
}
