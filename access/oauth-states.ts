import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../engines/postgres/port';
import type { SecretBox } from '../engines/secrets/port';
import type { GrantKind } from '../vendors/oauth/port';

/** What a login at a vendor was begun for; it ends with the exchange, or after ten minutes. Source: spec doc2 §4.2. */
export interface OAuthState {
  user_id: string;
  /** Null where it is for the installation itself. */
  account_id: string | null;
  platform: string;
  kind: GrantKind;
  /** Whose app the person was sent with. */
  app: 'system' | 'account';
  client_id: string;
  return_to: string;
}

/** A state that was redeemed by this request. */
export interface RedeemedState extends OAuthState {
  state_hash: string;
  verifier: string;
  /** Set when this same request had redeemed the code before, and died. */
  connection_id: string | null;
}

const LIFETIME = "interval '10 minutes'";
/** Beyond these the oldest of a user is forgotten: who begins without end keeps no more. */
const MOST_OF_ONE = 20;

export const oauthStateContext = (state_hash: string): string => `oauth-state ${state_hash}`;
const hashOf = (state: string): string => createHash('sha256').update(state).digest('hex');

interface States {
  db: Database;
  secrets: SecretBox;
}

/** Begins a login at a vendor. The state is shown once; the verifier never leaves. */
export async function beginOAuth(
  { db, secrets }: States,
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
      [user_id, MOST_OF_ONE],
      'oauth-state-bound',
    );
  });
  return { state, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

/**
 * Takes a state for one request: nobody else redeems it then. The request itself may come again, where its
 * `Idempotency-Key` says that it is the same. Null for one that is unknown, over, used, or somebody else's.
 */
export async function redeemState(
  { db, secrets }: States,
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

/** Of a state that nobody has used: what it is for, so that guards can be judged before it is spent. */
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

/** Deletes what is long over. Returns how many. */
export async function sweepStates(db: Pick<Database, 'query'>): Promise<number> {
  const rows = await db.query(
    "delete from oauth_states where expires_at < now() - interval '1 hour' returning 1 as one",
  );
  return rows.length;
}
