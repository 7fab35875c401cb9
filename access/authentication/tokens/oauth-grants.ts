import { randomBytes } from 'node:crypto';
import { oauthGrant, oauthGrantStream } from '../../../domain/oauth-provider/oauth-grants';
import type { Queryable } from '../../../engines/postgres/port';
import type { Act } from '../../../app/write-path/act';
import { hashToken } from '../keys';
import type { Services } from '../../../app/services';

/**
 * Codes and active grants, as rows without events: codes last a minute, and the current refresh token changes with
 * every use. The agreement and its end are events, see `domain/oauth-provider/oauth-grants.ts`.
 */
export interface Grant {
  grant_id: string;
  client_id: string;
  user_id: string;
  account_id: string;
  session_id: string;
  scopes: string[];
  /** Unix milliseconds. */
  ends_at: number;
}

/** Grant and redirect of an authorization code. */
export interface Code extends Grant {
  redirect_uri: string;
  code_challenge: string;
}

/** Maximum of codes and of active grants for one user and client; the oldest end first. */
const MAX_OF_ONE_CLIENT = 100;
export const CODE_LIFETIME_MS = 60_000;
const MS = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;
const WHOLE = 'grant_id, client_id, user_id, account_id, session_id, scopes';

/** Creates a code for the user's agreement and stores its hash. Null when the session has ended. */
export async function keepCode(
  db: Pick<Queryable, 'query'>,
  agreed: Omit<Code, 'ends_at'>,
  now: number,
): Promise<string | null> {
  const code = randomBytes(32).toString('base64url');
  const { grant_id, client_id, user_id, account_id, session_id, scopes, redirect_uri, code_challenge } = agreed;
  const kept = await db.query(
    `insert into oauth_codes (code_hash, ${WHOLE}, redirect_uri, code_challenge, expires_at, grant_ends_at)
     select $1, $2, $3, $4, $5, s.id, $7, $8, $9, to_timestamp($10 / 1000.0), s.expires_at
     from sessions s where s.id = $6 and s.expires_at > to_timestamp($11 / 1000.0)
     returning 1 as one`,
    [
      ...[hashToken(code), grant_id, client_id, user_id, account_id, session_id, scopes, redirect_uri, code_challenge],
      ...[now + CODE_LIFETIME_MS, now],
    ],
    'oauth-code-keep',
  );
  await db.query(
    `delete from oauth_codes where code_hash in (
       select code_hash from oauth_codes where user_id = $1 and client_id = $2
       order by expires_at desc, code_hash offset ${MAX_OF_ONE_CLIENT})`,
    [user_id, client_id],
    'oauth-codes-surplus',
  );
  return kept.length > 0 ? code : null;
}

/**
 * Uses up a code. Any attempt uses it up, because a code that leaked is worthless afterwards. Null for an unknown code;
 * `expired` and `reused` for one of ours.
 */
export async function takeCode(
  db: Pick<Queryable, 'query'>,
  code: string,
  now: number,
): Promise<{ code: Code; state: 'taken' | 'expired' | 'reused' } | null> {
  const code_hash = hashToken(code);
  const columns = `${WHOLE}, redirect_uri, code_challenge, ${MS('grant_ends_at')} as ends_at,
    ${MS('expires_at')} as expires_at`;
  const [taken] = await db.query<Code & { expires_at: number }>(
    `update oauth_codes set used_at = to_timestamp($2 / 1000.0) where code_hash = $1 and used_at is null
     returning ${columns}`,
    [code_hash, now],
    'oauth-code-take',
  );
  if (taken) return { code: taken, state: taken.expires_at > now ? 'taken' : 'expired' };
  const [used] = await db.query<Code>(
    `select ${columns} from oauth_codes where code_hash = $1`,
    [code_hash],
    'oauth-code-used',
  );
  return used ? { code: used, state: 'reused' } : null;
}

/** Deletes a code that did not lead to a grant. */
export async function dropCode(db: Pick<Queryable, 'query'>, code: string): Promise<void> {
  await db.query('delete from oauth_codes where code_hash = $1', [hashToken(code)], 'oauth-code-drop');
}

/** Activates a grant. */
export async function openGrant(
  db: Pick<Queryable, 'query'>,
  grant: Grant,
  refresh_jti_hash: string | null,
  now: number,
): Promise<void> {
  const { grant_id, client_id, user_id, account_id, session_id, scopes, ends_at } = grant;
  await db.query(
    `insert into oauth_grants (id, client_id, user_id, account_id, session_id, scopes, refresh_jti_hash,
                               begun_at, refreshed_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8 / 1000.0), to_timestamp($8 / 1000.0),
             to_timestamp($9 / 1000.0))`,
    [grant_id, client_id, user_id, account_id, session_id, scopes, refresh_jti_hash, now, ends_at],
    'oauth-grant-open',
  );
}

/**
 * Ends the user's least recently refreshed grants to a client beyond {@link MAX_OF_ONE_CLIENT}. The event comes first:
 * if this call dies, the reactor `oauth-grants` deletes the row. Rows of grants that have ended with their session are
 * deleted without an event, and before others.
 */
export async function endSurplusGrants(
  { act, services }: { act: Act; services: Pick<Services, 'db' | 'access'> },
  { user_id, client_id }: Pick<Grant, 'user_id' | 'client_id'>,
): Promise<void> {
  const surplus = await services.db.query<{ grant_id: string; account_id: string; active: boolean }>(
    `select g.id as grant_id, g.account_id, s.id is not null as active
     from oauth_grants g
     left join sessions s on s.id = g.session_id and least(s.expires_at, g.expires_at) > now()
     where g.user_id = $1 and g.client_id = $2
     order by active desc, g.refreshed_at desc, g.id desc offset ${MAX_OF_ONE_CLIENT}`,
    [user_id, client_id],
    'oauth-grants-surplus',
  );
  for (const { grant_id, account_id, active } of surplus) {
    if (active) {
      const ids = { grant_id, client_id, user_id, account_id };
      const end = { type: 'oauth_grant:end', ...ids, reason: 'limit_exceeded' } as const;
      // The new grant itself may be among them, when many are exchanged at once.
      await act(oauthGrant, oauthGrantStream(grant_id), end, { step: 'end' });
    }
    await killGrant(services.db, grant_id);
    await services.access.announce({ credential_id: grant_id });
  }
}

/** An active grant and the hash of its current refresh token; null when it, its session or its client has ended. */
export async function livingGrant(
  db: Pick<Queryable, 'query'>,
  grant_id: string,
  now: number,
): Promise<(Grant & { current: string | null }) | null> {
  const [row] = await db.query<Grant & { current: string | null }>(
    `select g.id as grant_id, g.client_id, g.user_id, g.account_id, g.session_id, g.scopes,
       ${MS('g.expires_at')} as ends_at, g.refresh_jti_hash as current
     from oauth_grants g join sessions s on s.id = g.session_id and s.user_id = g.user_id
     where g.id = $1 and least(g.expires_at, s.expires_at) > to_timestamp($2 / 1000.0)
       and not exists (select 1 from revocations v
                       where v.credential_id in (g.id::text, g.session_id::text, g.client_id::text))`,
    [grant_id, now],
    'oauth-grant-living',
  );
  return row ?? null;
}

/** Replaces the current refresh token; false when another call has replaced it. */
export async function rotateGrant(
  db: Pick<Queryable, 'query'>,
  grant_id: string,
  from: string,
  to: string,
  now: number,
): Promise<boolean> {
  const moved = await db.query(
    `update oauth_grants set refresh_jti_hash = $3, refreshed_at = to_timestamp($4 / 1000.0)
     where id = $1 and refresh_jti_hash = $2 returning 1 as one`,
    [grant_id, from, to, now],
    'oauth-grant-rotate',
  );
  return moved.length > 0;
}

/** SQL: deletes a grant and records its revocation. */
export const KILL_GRANT = `
  with ended as (delete from oauth_grants where id = $1) insert into revocations (credential_id) values ($1::text)`;

/** Ends a grant on every node. */
export async function killGrant(db: Pick<Queryable, 'query'>, grant_id: string): Promise<void> {
  await db.query(KILL_GRANT, [grant_id], 'oauth-grant-kill');
}

/** Ends all grants and codes of a client, on every node. */
export async function killClient(db: Pick<Queryable, 'query'>, client_id: string): Promise<void> {
  await db.query(
    `with grants as (delete from oauth_grants where client_id = $1),
       codes as (delete from oauth_codes where client_id = $1)
     insert into revocations (credential_id) values ($1::text)`,
    [client_id],
    'oauth-client-kill',
  );
}

/** Deletes expired grants, expired unused codes, and used codes whose grant would have expired. */
export async function sweepOauth(db: Pick<Queryable, 'query'>): Promise<void> {
  await db.query('delete from oauth_grants where expires_at < now()');
  await db.query(
    'delete from oauth_codes where (case when used_at is null then expires_at else grant_ends_at end) < now()',
  );
}
