import type { Database, Queryable } from '../engines/postgres/port';
import { session, sessionStream, type SessionEnd } from '../domain/sessions';
import { DomainError } from '../kernel/errors';
import type { Act } from './act';
import type { Caller, RequestContext } from './caller';
import { newId } from './event-ids';
import type { Services } from './services';
import { type SessionTokens, signAccess, signPair, type Signing } from './session-tokens';
import { load } from './states';
import { hashJti } from './tokens';

/*
 * What a session is decided by is its events; that it lives, and which refresh token is its current one, is a row of
 * `sessions` that is compared and set. A session ends 30 days after the login whatever the rotation. Source: spec doc1
 * §5.3 rule 7, rulings "tokens".
 */

/** On whose behalf, of a command as of an operator. */
export interface Acting {
  act: Act;
  context: Pick<RequestContext, 'now' | 'idempotency_seed'>;
}

type Opening = Signing & { db: Pick<Database, 'query'> };
/** Without `access` no node of this process has anything to forget. */
type Ending = { db: Pick<Queryable, 'query'>; access?: Services['access'] };

const PAGE = 500;
/** Sessions of one user that are ended together. */
const AT_A_TIME = 20;
/** Living sessions of one user: whatever is done to all of them takes as long as there are. */
const MOST_LIVING = 100;

const instant = (ms: number): string => new Date(ms).toISOString();
const refused = () => new DomainError('REFUSED_REFRESH_TOKEN');

/** Opens a session: the event first, so that no row lives without one. */
export async function openSession(
  { act, context }: Acting,
  services: Opening,
  login: { user_id: string; account_id: string | null; provider: string | null },
): Promise<SessionTokens> {
  const { now } = context;
  const { user_id, account_id, provider } = login;
  const session_id = newId(context, 'session');
  const ends_at = now + services.settings.auth.session_lifetime;
  await act(session, sessionStream(session_id), {
    type: 'session:start',
    ...{ session_id, user_id, provider, active_account_id: account_id, ends_at: instant(ends_at) },
  });
  const opened = { session_id, user_id, account_id, ends_at };
  const signed = await signPair(services, opened, now, newId(context, 'refresh token'));
  await services.db.query(
    `insert into sessions (id, user_id, refresh_jti_hash, created_at, refreshed_at, expires_at)
     values ($1, $2, $3, to_timestamp($4 / 1000.0), to_timestamp($4 / 1000.0), to_timestamp($5 / 1000.0))
     on conflict (id) do nothing`,
    [session_id, user_id, hashJti(signed.refresh.jti), now, ends_at],
    'session-open',
  );
  return signed;
}

/**
 * The account that a login begins on: that of the user's newest session while they belong to it, else the one that they
 * joined first; null for who has none.
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

interface Living {
  user_id: string;
  current: string;
  previous: string | null;
  /** Unix milliseconds. */
  created_at: number;
  ends_at: number;
}

/**
 * Trades a refresh token for new ones; it stops working at once, also when two calls trade it together. A call that was
 * made and never answered is answered when it is repeated: the new token's id derives from its Idempotency-Key. A token
 * that was traded before ends the session, unless the call had come before the trade: two tabs refreshed at once.
 * @throws DomainError `REFUSED_REFRESH_TOKEN`
 */
export async function refreshSession(
  { act, context }: Acting,
  services: Opening & Ending & Pick<Services, 'events'>,
  refresh_token: string,
): Promise<SessionTokens> {
  const { now } = context;
  const { claims, failure } = await services.tokens.verify(refresh_token, now);
  const session_id = claims?.session_id;
  if (failure !== null || claims.use !== 'refresh' || claims.client || !session_id) throw refused();
  const jti = context.idempotency_seed === null ? undefined : newId(context, `refresh ${claims.jti}`);
  const presented = hashJti(claims.jti);
  const own = jti === undefined ? null : hashJti(jti);
  const living = await livingOf(services.db, session_id, now);
  if (living === null || living.user_id !== claims.sub) throw refused();
  const { user_id, ends_at, current, previous, came_before } = living;
  if (current !== presented && current !== own) {
    if (previous === presented && came_before) throw refused();
    await endReused(act, services, session_id);
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
  // Another call has traded it in between: that is no reuse.
  if (moved.length === 0) throw refused();
  return signed;
}

/**
 * The session that a refresh token belongs to, however old the token is.
 * @throws DomainError `REFUSED_REFRESH_TOKEN` when it is not a refresh token of ours
 */
export async function sessionOf({ tokens }: Pick<Services, 'tokens'>, refresh_token: string, now: number) {
  const { claims } = await tokens.verify(refresh_token, now);
  if (claims === null || claims.use !== 'refresh' || claims.client || claims.session_id === null) throw refused();
  return claims.session_id;
}

/** Ends a session on every node; one that is over stays so. */
export async function endSession(act: Act, services: Ending, session_id: string, reason: SessionEnd): Promise<void> {
  // Before the append: no crash leaves a session alive that its owner has ended.
  await kill(services.db, [session_id]);
  await act(session, sessionStream(session_id), { type: 'session:end', reason });
  await services.access?.announce({ credential_id: session_id });
}

/** Ends all sessions of a user, but the one to keep. Returns how many there were. */
export async function endSessions(
  act: Act,
  services: Ending,
  { user_id, except = null }: { user_id: string; except?: string | null },
  reason: SessionEnd,
): Promise<number> {
  // Those that a call before has ended and not told of are told of now.
  const rows = await services.db.query<{ id: string }>(
    `select id from sessions where user_id = $1 and id is distinct from $2::uuid
     union select id from user_sessions where user_id = $1 and id is distinct from $2::uuid order by id`,
    [user_id, except],
    'sessions-of-user',
  );
  const ids = rows.map(({ id }) => id);
  await endAll(act, services, ids, reason);
  return ids.length;
}

/** After a login: where a user has more sessions than may live, those that were refreshed longest ago end. */
export async function endSurplus(act: Act, services: Ending, user_id: string): Promise<void> {
  const rows = await services.db.query<{ id: string }>(
    `select id from sessions where user_id = $1 and expires_at > now()
     order by refreshed_at desc, id desc offset ${MOST_LIVING} limit ${AT_A_TIME}`,
    [user_id],
    'sessions-surplus',
  );
  if (rows.length > 0)
    await endAll(
      act,
      services,
      rows.map(({ id }) => id),
      'revoked',
    );
}

async function endAll(act: Act, services: Ending, ids: readonly string[], reason: SessionEnd): Promise<void> {
  await kill(services.db, ids);
  for (let n = 0; n < ids.length; n += AT_A_TIME) {
    const some = ids.slice(n, n + AT_A_TIME);
    await Promise.all(some.map((id) => act(session, sessionStream(id), { type: 'session:end', reason })));
    await Promise.all(some.map(async (credential_id) => services.access?.announce({ credential_id })));
  }
}

/** Which sessions: one, all of a user, or all that point at an account. */
export type WhichSessions = { session_id: string } | { user_id: string } | { account_id: string };

/** Lets sessions act on another account, or on none, from their next refresh on. */
export async function moveSessions(
  act: Act,
  db: Pick<Queryable, 'query'>,
  which: WhichSessions,
  account_id: string | null,
): Promise<void> {
  const [[kind, value]] = Object.entries(which) as [[keyof typeof COLUMNS, string]];
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const rows = await db.query<{ id: string; adopted: boolean; ends_at: number } & Living>(
      `select s.id, u.id is not null as adopted, ${LIVING} from sessions s left join user_sessions u on u.id = s.id
       where ${COLUMNS[kind]} = $1 and s.id > $2 and s.expires_at > now() order by s.id limit ${PAGE}`,
      [value, after],
      `sessions-to-move-${kind}`,
    );
    for (const row of rows) {
      if (!row.adopted) await adopt(act, row.id, row, account_id);
      await act(session, sessionStream(row.id), { type: 'session:switch_account', active_account_id: account_id });
    }
    if (rows.length < PAGE) return;
    after = rows[rows.length - 1]!.id;
  }
}

/**
 * {@link moveSessions}, and a fresh access token on that account for the caller; null for who has no session (a key).
 */
export async function switchSessions(
  { act, caller, context }: Acting & { caller: Pick<Caller, 'kind' | 'credential_id' | 'user_id'> },
  services: Opening,
  which: WhichSessions,
  account_id: string | null,
): Promise<string | null> {
  await moveSessions(act, services.db, which, account_id);
  const { kind, credential_id: session_id, user_id } = caller;
  if (kind !== 'jwt' || session_id === null || user_id === null) return null;
  const living = await livingOf(services.db, session_id, context.now);
  if (living === null) return null;
  return (await signAccess(services, { session_id, user_id, account_id, ends_at: living.ends_at }, context.now)).token;
}

const COLUMNS = { session_id: 's.id', user_id: 's.user_id', account_id: 'u.active_account_id' } as const;
const MS = (column: string) => `(extract(epoch from s.${column}) * 1000)::float8`;
const LIVING = `s.user_id, s.refresh_jti_hash as current, s.previous_jti_hash as previous,
  ${MS('created_at')} as created_at, ${MS('expires_at')} as ends_at`;

/** `came_before`: whether the call was received before the token was traded last, by the database's clock alone. */
async function livingOf(
  db: Pick<Queryable, 'query'>,
  session_id: string,
  now: number,
): Promise<(Living & { came_before: boolean }) | null> {
  const [row] = await db.query(
    `select ${LIVING}, clock_timestamp() - make_interval(secs => $3 / 1000.0) < s.refreshed_at as came_before
     from sessions s join users u on u.id = s.user_id
     where s.id = $1 and s.expires_at > to_timestamp($2 / 1000.0)
       and not exists (select 1 from revocations r where r.credential_id = s.id::text)`,
    // How long ago is the same by every clock.
    [session_id, now, Date.now() - now],
    'session-living',
  );
  return (row as (Living & { came_before: boolean }) | undefined) ?? null;
}

/**
 * The account that a session acts on, as long as its user belongs to it.
 * @throws DomainError `REFUSED_REFRESH_TOKEN` for one that an event has ended, whose row is still there
 */
async function accountOf(
  act: Act,
  { events, db }: Pick<Services, 'events'> & { db: Pick<Queryable, 'query'> },
  { session_id, claimed, living }: { session_id: string; claimed: string | null; living: Living },
): Promise<string | null> {
  const known = await load(events, session, sessionStream(session_id));
  if (known?.state?.status === 'ended') throw refused();
  const account_id = known?.state ? known.state.active_account_id : claimed;
  if (known === null) await adopt(act, session_id, living, claimed);
  if (account_id === null) return null;
  const [member] = await db.query(
    'select 1 from account_members where user_id = $1 and account_id = $2',
    [living.user_id, account_id],
    'session-membership',
  );
  return member === undefined ? null : account_id;
}

/** A session of the build before gets its first event. */
async function adopt(act: Act, session_id: string, living: Living, account_id: string | null): Promise<void> {
  const { user_id, created_at, ends_at } = living;
  await act(
    session,
    sessionStream(session_id),
    {
      type: 'session:adopt',
      ...{ session_id, user_id, provider: null, active_account_id: account_id },
      ...{ started_at: instant(created_at), ends_at: instant(ends_at) },
    },
    { step: 'adopt' },
  );
}

async function endReused(act: Act, services: Ending, session_id: string): Promise<void> {
  await kill(services.db, [session_id]);
  await act(session, sessionStream(session_id), { type: 'session:report_reuse' });
  await services.access?.announce({ credential_id: session_id });
}

/** Every node refuses these from now on. */
async function kill(db: Pick<Queryable, 'query'>, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.query(
    `with ended as (delete from sessions where id = any($1) returning id),
       tokens as (delete from ws_tokens where parent_id in (select id::text from ended))
     insert into revocations (credential_id) select id::text from ended`,
    [ids],
    'sessions-kill',
  );
}
