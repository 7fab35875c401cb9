import { session, sessionStream, type SessionEnd } from '../domain/sessions';
import type { Queryable } from '../engines/postgres/port';
import type { Act } from './act';
import type { Services } from './services';

/** Without `access` no node of this process has anything to forget. */
export type Ending = { db: Pick<Queryable, 'query'>; access?: Services['access'] };

/** Sessions of one user that are ended together. */
const AT_A_TIME = 20;
/** Most living sessions of one user: ending all of them takes time for each. */
const MOST_LIVING = 100;

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
  // Sessions that an earlier call has killed before it died get their events now.
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
  // Of several logins at once the one that looks last sees all sessions, so that none beyond the bound is left.
  const rows = await services.db.query<{ id: string }>(SURPLUS, [user_id], 'sessions-surplus');
  await sayEnded(
    act,
    services,
    rows.map(({ id }) => id),
    'revoked',
  );
}

async function endAll(act: Act, services: Ending, ids: readonly string[], reason: SessionEnd): Promise<void> {
  await kill(services.db, ids);
  await sayEnded(act, services, ids, reason);
}

/** The events of sessions that are dead already. */
async function sayEnded(act: Act, services: Ending, ids: readonly string[], reason: SessionEnd): Promise<void> {
  for (let n = 0; n < ids.length; n += AT_A_TIME) {
    const some = ids.slice(n, n + AT_A_TIME);
    await Promise.all(some.map((id) => act(session, sessionStream(id), { type: 'session:end', reason })));
    await Promise.all(some.map(async (credential_id) => services.access?.announce({ credential_id })));
  }
}

/** A refresh token that was traded before came again: somebody else holds it. */
export async function endReused(act: Act, services: Ending, session_id: string): Promise<void> {
  await kill(services.db, [session_id]);
  await act(session, sessionStream(session_id), { type: 'session:report_reuse' });
  await services.access?.announce({ credential_id: session_id });
}

/** Every node refuses these from now on; returns those that lived. */
const killing = (which: string) => `
  with ended as (delete from sessions where id in (${which}) returning id),
    tokens as (delete from ws_tokens where parent_id in (select id::text from ended))
  insert into revocations (credential_id) select id::text from ended returning credential_id as id`;
const KILL = killing('select unnest($1::uuid[])');
/** Locked in the order of their ids, so that two logins never wait for each other. */
const SURPLUS = killing(`
  select id from sessions where id in (
    select id from sessions where user_id = $1 and expires_at > now()
    order by refreshed_at desc, id desc offset ${MOST_LIVING})
  order by id for update`);

async function kill(db: Pick<Queryable, 'query'>, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await db.query(KILL, [ids], 'sessions-kill');
}
