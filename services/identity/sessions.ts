import type { Database, Queryable } from '../../engines/postgres/port';
import { session, sessionStream } from '../../domain/identity/sessions';
import { DomainError } from '../../kernel/errors';
import type { Act } from '../../app/write-path/act';
import type { RequestContext } from '../../access/authentication/caller';
import { newId } from '../../app/write-path/event-ids';
import { backfillSessionStream, type ActiveSession, findActiveSession } from './active-sessions';
import type { Services } from '../../app/services';
import { revokeOnTokenReuse, type SessionRevocationDeps } from './session-revocation';
import { type SessionTokens, signPair, type Signing } from '../../access/authentication/tokens/session-tokens';
import { load } from '../../app/write-path/aggregate-cache';
import { hashJti } from '../../access/authentication/tokens/jwt';

/*
 * Commands on a session are decided from its events. Whether it is active and its current refresh token are a row of
 * `sessions`, changed by compare-and-set. A session ends 30 days after the login whatever the rotation. Source: spec
 * doc1 §5.3 rule 7, rulings "tokens".
 */

/** Context of an act, for commands and operators alike. */
export interface Acting {
  act: Act;
  context: Pick<RequestContext, 'now' | 'idempotency_seed'>;
}

type Opening = Signing & { db: Pick<Database, 'query'> };

const instant = (ms: number): string => new Date(ms).toISOString();
const refused = () => new DomainError('REFUSED_REFRESH_TOKEN');

/** Opens a session: the event first, so that no row lacks one. */
export async function openSession(
  { act, context }: Acting,
  services: Opening,
  login: { user_id: string; account_id: string | null; provider: string | null; login_connection_id?: string },
): Promise<SessionTokens> {
  const { now } = context;
  const { user_id, account_id, provider, login_connection_id = null } = login;
  const session_id = newId(context, 'session');
  const ends_at = now + services.settings.auth.session_lifetime;
  await act(session, sessionStream(session_id), {
    type: 'session:start',
    ...{ session_id, user_id, provider, active_account_id: account_id, ends_at: instant(ends_at) },
  });
  const opened = { session_id, user_id, account_id, ends_at };
  const signed = await signPair(services, opened, now, newId(context, 'refresh token'));
  await services.db.query(
    `insert into sessions (id, user_id, refresh_jti_hash, created_at, refreshed_at, expires_at, login_connection_id)
     values ($1, $2, $3, to_timestamp($4 / 1000.0), to_timestamp($4 / 1000.0), to_timestamp($5 / 1000.0), $6)
     on conflict (id) do nothing`,
    [session_id, user_id, hashJti(signed.refresh.jti), now, ends_at, login_connection_id],
    'session-open',
  );
  return signed;
}

/**
 * Account of a new session: that of the user's newest session if they still belong to it, else the one that they joined
 * first; null without any.
 */
export async function accountAtLogin({ db }: Pick<Opening, 'db'>, user_id: string): Promise<string | null> {
  const [row] = await db.query<{ account_id: string }>(
    `select m.account_id from account_members m
     left join (select active_account_id from user_sessions where user_id = $1
                order by started_at desc, id desc limit 1) last on last.active_account_id = m.account_id
     where m.user_id = $1 order by last.active_account_id is null, m.joined_at, m.account_id limit 1`,
    [user_id],
    'session-account-at-login',
  );
  return row?.account_id ?? null;
}

/**
 * Exchanges a refresh token for new tokens; the old one becomes invalid, and of concurrent exchanges one wins. A
 * repetition of an unanswered call gets the same answer: the new token's id derives from its Idempotency-Key. Reuse of
 * an exchanged token ends the session, unless the call arrived before the exchange, as when two tabs refresh at once.
 * @throws DomainError `REFUSED_REFRESH_TOKEN`
 */
export async function refreshSession(
  { act, context }: Acting,
  services: Opening & SessionRevocationDeps & Pick<Services, 'events'>,
  refresh_token: string,
): Promise<SessionTokens> {
  const { now } = context;
  const { claims, failure } = await services.tokens.verify(refresh_token, now);
  const session_id = claims?.session_id;
  if (failure !== null || claims.use !== 'refresh' || claims.client || !session_id) throw refused();
  const jti = context.idempotency_seed === null ? undefined : newId(context, `refresh ${claims.jti}`);
  const presented = hashJti(claims.jti);
  const own = jti === undefined ? null : hashJti(jti);
  const living = await findActiveSession(services.db, session_id, now);
  if (living === null || living.user_id !== claims.sub) throw refused();
  const { user_id, ends_at, current, previous, came_before } = living;
  if (current !== presented && current !== own) {
    if (previous === presented && came_before) throw refused();
    await revokeOnTokenReuse(act, services, session_id);
    throw refused();
  }
  const account_id = await accountOf(act, services, { session_id, claimed: claims.account_id, living });
  const signed = await signPair(services, { session_id, user_id, account_id, ends_at }, now, jti);
  if (current === own) return signed;
  const moved = await services.db.query(
    `update sessions set refresh_jti_hash = $3, previous_jti_hash = $2,
       refreshed_at = clock_timestamp()
     where id = $1 and refresh_jti_hash = $2 returning id`,
    [session_id, presented, hashJti(signed.refresh.jti)],
    'session-refresh',
  );
  // A concurrent call has exchanged the token: no reuse.
  if (moved.length === 0) throw refused();
  return signed;
}

/**
 * Session of a refresh token, expired or not.
 * @throws DomainError `REFUSED_REFRESH_TOKEN` when it is not a refresh token of ours
 */
export async function sessionOf({ tokens }: Pick<Services, 'tokens'>, refresh_token: string, now: number) {
  const { claims } = await tokens.verify(refresh_token, now);
  if (claims === null || claims.use !== 'refresh' || claims.client || claims.session_id === null) throw refused();
  return claims.session_id;
}

/**
 * Account of a session; null once its user no longer belongs to it.
 * @throws DomainError `REFUSED_REFRESH_TOKEN` for a session that an event has ended but whose row remains
 */
async function accountOf(
  act: Act,
  { events, db }: Pick<Services, 'events'> & { db: Pick<Queryable, 'query'> },
  { session_id, claimed, living }: { session_id: string; claimed: string | null; living: ActiveSession },
): Promise<string | null> {
  const known = await load(events, session, sessionStream(session_id));
  if (known?.state?.status === 'ended') throw refused();
  const account_id = known?.state ? known.state.active_account_id : claimed;
  if (known === null) await backfillSessionStream(act, session_id, living, claimed);
  if (account_id === null) return null;
  const [member] = await db.query(
    'select 1 from account_members where user_id = $1 and account_id = $2',
    [living.user_id, account_id],
    'session-membership',
  );
  return member === undefined ? null : account_id;
}
