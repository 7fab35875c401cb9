import { randomBytes } from 'node:crypto';
import type { Queryable } from '../engines/postgres/port';
import { hashToken } from './keys';

/**
 * Codes, and what of grants is live. No event: codes are gone in a minute, and the current refresh token changes with
 * every use; what was agreed and how it ended is in `domain/oauth-grants.ts`.
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

/** What a code was given for. */
export interface Code extends Grant {
  redirect_uri: string;
  code_challenge: string;
}

export const CODE_LIFETIME_MS = 60_000;
const MS = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;
const WHOLE = 'grant_id, client_id, user_id, account_id, session_id, scopes';

/** A code for what the user agreed to, until their session ends; only its hash is kept. Null when that has ended. */
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
  return kept.length > 0 ? code : null;
}

/**
 * Takes a code, for whoever comes first. It is used up by any attempt: a code that was seen where it does not belong is
 * worth nothing more. `expired` and `reused` are told of codes that were ours.
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

/** A code that gave nothing need not be known again. */
export async function dropCode(db: Pick<Queryable, 'query'>, code: string): Promise<void> {
  await db.query('delete from oauth_codes where code_hash = $1', [hashToken(code)], 'oauth-code-drop');
}

/** Makes a grant live. */
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

/** A living grant and the hash of its current refresh token; null when it, its session or its client has ended. */
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

/** Replaces the current refresh token; false when it was another one by then. */
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

/** Every node refuses the grant from now on. */
export async function killGrant(db: Pick<Queryable, 'query'>, grant_id: string): Promise<void> {
  await db.query(
    `with ended as (delete from oauth_grants where id = $1) insert into revocations (credential_id) values ($1::text)`,
    [grant_id],
    'oauth-grant-kill',
  );
}

/** Everything that a client holds ends, on every node. */
export async function killClient(db: Pick<Queryable, 'query'>, client_id: string): Promise<void> {
  await db.query(
    `with grants as (delete from oauth_grants where client_id = $1),
       codes as (delete from oauth_codes where client_id = $1)
     insert into revocations (credential_id) values ($1::text)`,
    [client_id],
    'oauth-client-kill',
  );
}

/** Drops what can be asked for no more. */
export async function sweepOauth(db: Pick<Queryable, 'query'>): Promise<void> {
  await db.query('delete from oauth_grants where expires_at < now()');
  await db.query(
    'delete from oauth_codes where (case when used_at is null then expires_at else grant_ends_at end) < now()',
  );
}
