import { session, sessionStream, type SessionEnd } from '../../domain/identity/sessions';
import type { UserEvent } from '../../domain/identity/users';
import type { Queryable } from '../../engines/postgres/port';
import type { Act } from '../../app/write-path/act';
import type { Services } from '../../app/services';
import { type MadeCredential, madeWithLogin, revokeMadeWithLogin, type RemovedLogin } from './credential-origins';

/** Dependencies of ending sessions. Absent `access`: this process has no caches to invalidate. */
export type SessionRevocationDeps = { db: Pick<Queryable, 'query'>; access?: Services['access'] };

/** Number of sessions whose end events are appended concurrently. */
const AT_A_TIME = 20;
/** Maximum of active sessions per user, because ending all of them takes time for each. */
const MAX_LIVING = 100;

/** Ends a session on every node; idempotent. */
export async function endSession(
  act: Act,
  services: SessionRevocationDeps,
  session_id: string,
  reason: SessionEnd,
  { step }: { step?: string } = {},
): Promise<void> {
  // Before the append, so that no crash leaves an ended session valid.
  await kill(services.db, [session_id]);
  await act(session, sessionStream(session_id), { type: 'session:end', reason }, step === undefined ? {} : { step });
  await services.access?.announce({ credential_id: session_id });
}

/** Sessions and credentials that end with a login. */
export interface LoginEnds {
  sessions: readonly string[];
  made: readonly MadeCredential[];
}

/** Reads the sessions and credentials that end with a login when it is removed. */
export async function endsOfLogin(db: Pick<Queryable, 'query'>, login: RemovedLogin): Promise<LoginEnds> {
  return { sessions: await sessionsOfLogin(db, login), made: await madeWithLogin(db, login) };
}

/**
 * Ends the sessions that the logins removed in these events opened, and the keys and tokens that were made in them.
 *
 * @param known read before the removal: the reactor may have deleted the rows of some since
 */
export async function endRemovedLogins(
  act: Act,
  services: SessionRevocationDeps,
  events: readonly UserEvent[],
  known: LoginEnds = { sessions: [], made: [] },
): Promise<void> {
  for (const event of events)
    if (event.type === 'user:login_disconnected') {
      const ids = [...new Set([...known.sessions, ...(await sessionsOfLogin(services.db, event))])];
      // First, so that an ended session makes no further key.
      await kill(services.db, ids);
      await revokeMadeWithLogin(act, services, event, known.made);
      await appendEnded(act, services, ids, 'revoked');
    }
}

/**
 * Sessions opened by a login. A session of an earlier release has no login and ends with any, except the session that
 * removed the login. Dead sessions of the user that lack their event are among them: the rows that named their login
 * are gone.
 */
export async function sessionsOfLogin(
  db: Pick<Queryable, 'query'>,
  { user_id, login_connection_id, session_id }: RemovedLogin,
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select s.id from sessions s where s.user_id = $1 and (s.login_connection_id = $2
       or (s.login_connection_id is null and s.id is distinct from $3::uuid))
     union ${WITHOUT_END}
     order by id`,
    [user_id, login_connection_id, session_id],
    'sessions-of-login',
  );
  return rows.map(({ id }) => id);
}

/** Ends all sessions of a user except the given one. Returns the number of sessions. */
export async function endSessions(
  act: Act,
  services: SessionRevocationDeps,
  { user_id, except = null }: { user_id: string; except?: string | null },
  reason: SessionEnd,
): Promise<number> {
  // Includes sessions whose row an interrupted call has deleted; their end events are appended now.
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

/**
 * Called after a login: ends the least recently refreshed sessions beyond {@link MAX_LIVING}, and appends the end
 * events that an earlier login did not append because it died.
 */
export async function revokeExcessSessions(act: Act, services: SessionRevocationDeps, user_id: string): Promise<void> {
  // The last of several concurrent logins sees all sessions, so that none beyond the bound remains.
  const surplus = await services.db.query<{ id: string }>(SURPLUS, [user_id], 'sessions-surplus');
  const without_end = await services.db.query<{ id: string }>(WITHOUT_END, [user_id], 'sessions-without-end');
  const ids = new Set([...surplus, ...without_end].map(({ id }) => id));
  // The login's own session may be among them, and has a command on its stream already.
  await appendEnded(act, services, [...ids], 'revoked', { step: 'end' });
}

async function endAll(
  act: Act,
  services: SessionRevocationDeps,
  ids: readonly string[],
  reason: SessionEnd,
): Promise<void> {
  await kill(services.db, ids);
  await appendEnded(act, services, ids, reason);
}

/** Appends the end events of sessions whose rows are already deleted. */
async function appendEnded(
  act: Act,
  services: SessionRevocationDeps,
  ids: readonly string[],
  reason: SessionEnd,
  options: { step?: string } = {},
): Promise<void> {
  for (let n = 0; n < ids.length; n += AT_A_TIME) {
    const some = ids.slice(n, n + AT_A_TIME);
    await Promise.all(some.map((id) => act(session, sessionStream(id), { type: 'session:end', reason }, options)));
    await Promise.all(some.map(async (credential_id) => services.access?.announce({ credential_id })));
  }
}

/** Ends a session whose refresh token was reused, which indicates theft. */
export async function revokeOnTokenReuse(act: Act, services: SessionRevocationDeps, session_id: string): Promise<void> {
  await kill(services.db, [session_id]);
  await act(session, sessionStream(session_id), { type: 'session:report_reuse' });
  await services.access?.announce({ credential_id: session_id });
}

/**
 * SQL: deletes sessions with their ws tokens and records the revocations; returns the deleted ids.
 */
const killing = (which: string) => `
  with ended as (delete from sessions where id in (${which}) returning id),
    tokens as (delete from ws_tokens where parent_id in (select id::text from ended))
  insert into revocations (credential_id) select id::text from ended returning credential_id as id`;
export const DELETE_SESSIONS = killing('select unnest($1::uuid[])');
/** Locks rows by id, so that two logins do not deadlock. */
const SURPLUS = killing(`
  select id from sessions where id in (
    select id from sessions where user_id = $1 and expires_at > now()
    order by refreshed_at desc, id desc offset ${MAX_LIVING})
  order by id for update`);

/**
 * SQL: ids of sessions of user $1 that have lost their row and lack their end event, because the call that deleted the
 * row died. A revocation is kept for an hour; no login stores the row of a session that began more than a day ago.
 */
const WITHOUT_END = `
  select u.id from user_sessions u
  where u.user_id = $1 and u.expires_at > now() and not exists (select 1 from sessions s where s.id = u.id)
    and (u.started_at < now() - interval '1 day'
      or exists (select 1 from revocations r where r.credential_id = u.id::text))`;

async function kill(db: Pick<Queryable, 'query'>, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await db.query(DELETE_SESSIONS, [ids], 'sessions-kill');
}
