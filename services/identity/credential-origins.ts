import type { Caller } from '../../access/authentication/caller';
import type { Services } from '../../app/services';
import type { Act } from '../../app/write-path/act';
import { apiKey, apiKeyStream } from '../../domain/credentials/api-keys';
import { popoutToken, popoutTokenStream } from '../../domain/credentials/popout-tokens';
import type { UserEvent } from '../../domain/identity/users';
import type { Queryable } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';

/*
 * Personal keys and popout tokens end with the login whose session made them, also when a key of that session made
 * them, and after the session itself has ended. Source: spec rulings, "logins that were removed".
 */

type Db = Pick<Queryable, 'query'>;
type Maker = Pick<Caller, 'kind' | 'credential_id'>;
export interface MadeCredential {
  credential_id: string;
  kind: 'api_key' | 'popout_token';
}
export type RemovedLogin = Pick<
  Extract<UserEvent, { type: 'user:login_disconnected' }>,
  'user_id' | 'login_connection_id' | 'session_id'
>;

/** Number of credentials that are revoked concurrently. */
const AT_A_TIME = 20;

/** Locks the maker's row $4, so that a concurrent removal of its login waits for the new row. */
const recording = (makers: string, { maker, session }: { maker: string; session: string }) => `
  insert into credential_origins (credential_id, kind, account_id, user_id, session_id, login_connection_id)
  select $1, $2, $3, m.user_id, m.${session}, m.login_connection_id from ${makers} m where m.${maker} = $4
  for key share
  on conflict (credential_id) do update set credential_id = excluded.credential_id
  returning 1 as one`;
const OF_SESSION = recording('sessions', { maker: 'id', session: 'id' });
const OF_KEY = recording('credential_origins', { maker: 'credential_id', session: 'session_id' });

/**
 * Records which login a new key or token ends with; call it before the event, so that no credential lacks its row.
 * Returns false when the caller's session has ended meanwhile. A key of an earlier release has no login to inherit.
 */
export async function recordOrigin(
  db: Db,
  { kind: caller_kind, credential_id: maker }: Maker,
  { credential_id, kind, account_id }: MadeCredential & { account_id: string },
): Promise<boolean> {
  const in_session = caller_kind === 'jwt';
  const values = [credential_id, kind, account_id, maker];
  const recorded = in_session
    ? await db.query(OF_SESSION, values, 'credential-origin-of-session')
    : await db.query(OF_KEY, values, 'credential-origin-of-key');
  return recorded.length > 0 || !in_session;
}

/** The login behind a caller: that of their session, or of the session in which their key was made; null if unknown. */
export async function loginBehind(db: Db, { credential_id }: Maker): Promise<string | null> {
  const [known] = await db.query<{ login_connection_id: string | null }>(
    `select login_connection_id from sessions where id = $1
     union all select login_connection_id from credential_origins where credential_id = $1`,
    [credential_id],
    'login-behind',
  );
  return known?.login_connection_id ?? null;
}

/**
 * Keys and tokens that end with a login: those of its sessions, and those of sessions of earlier releases, which know
 * no login, except the session that removed it.
 */
export const madeWithLogin = (db: Db, { user_id, login_connection_id, session_id }: RemovedLogin) =>
  db.query<{ credential_id: string; kind: MadeCredential['kind'] }>(
    `select credential_id, kind from credential_origins
     where user_id = $1 and (login_connection_id = $2
       or (login_connection_id is null and session_id is distinct from $3::uuid))
     order by credential_id`,
    [user_id, login_connection_id, session_id],
    'made-with-login',
  );

/** Revokes a key or token; one that was revoked meanwhile, or never came into being, is skipped. */
export async function revokeMade(act: Act, { credential_id, kind }: MadeCredential): Promise<void> {
  try {
    if (kind === 'api_key') await act(apiKey, apiKeyStream(credential_id), { type: 'api_key:revoke' });
    else await act(popoutToken, popoutTokenStream(credential_id), { type: 'popout_token:revoke' });
  } catch (error) {
    if (!(error instanceof DomainError && ['KEY_NOT_FOUND', 'TOKEN_NOT_FOUND'].includes(error.reason))) throw error;
  }
}

/** SQL: forgets where these credentials were made. */
export const FORGET_ORIGINS = 'delete from credential_origins where credential_id = any($1::uuid[])';

const FORGET_ORIGIN = 'delete from credential_origins where credential_id = $1';

/**
 * Revokes everything that ends with a removed login, on every node; idempotent.
 *
 * @param known credentials that {@link madeWithLogin} returned before the removal: the reactor may have forgotten them
 */
export async function revokeMadeWithLogin(
  act: Act,
  { db, access }: { db: Db; access?: Services['access'] },
  login: RemovedLogin,
  known: readonly MadeCredential[] = [],
): Promise<void> {
  const still = () => madeWithLogin(db, login);
  const all = new Map([...known, ...(await still())].map((one) => [one.credential_id, one]));
  // A key that ends now may have made another one until its row was deleted.
  for (let made = [...all.values()]; made.length > 0; made = await still()) {
    const ids = made.map(({ credential_id }) => credential_id);
    // Before the append, so that no crash leaves one valid.
    await db.query(
      'insert into revocations (credential_id) select unnest($1::text[])',
      [ids],
      'made-with-login-revocations',
    );
    for (let n = 0; n < made.length; n += AT_A_TIME)
      await Promise.all(made.slice(n, n + AT_A_TIME).map((one) => revokeMade(act, one)));
    await Promise.all(ids.map(async (credential_id) => access?.announce({ credential_id })));
    // A statement each, because reactors delete the same rows in another order.
    for (const id of ids) await db.query(FORGET_ORIGIN, [id], 'credential-origin-forget');
  }
}
