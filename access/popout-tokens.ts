import type { Queryable } from '../engines/postgres/port';
import { expired, NO_PERMISSIONS, unauthorized, type Recognised } from './caller';
import { contextOf } from './contexts';
import { grantedBy, type RoleRow } from './roles';

/**
 * Who a popout token is: its list, as far as its creator holds it now, on its account. It ends with the membership of
 * who made it and of whom it acts for: neither leaves a way back behind. Source: spec doc1 §5.5.
 */
export async function findPopoutToken(
  db: Queryable,
  by: 'token_hash' | 'id',
  value: string,
  now: number,
): Promise<Recognised> {
  const [row] = await db.query(
    `select t.id, t.token_hash, t.account_id, t.user_id, t.permissions as scope,
       (extract(epoch from t.expires_at) * 1000)::float8 as expires_at, r.permissions, r.holds_all
     from popout_tokens t
       join account_members c on c.account_id = t.account_id and c.user_id = t.created_by
       left join account_roles r on r.id = c.role_id
     where t.${by} = $1 and t.revoked_at is null
       and (t.user_id is null or exists (
         select 1 from account_members m where m.account_id = t.account_id and m.user_id = t.user_id))
       and not exists (select 1 from revocations v where v.credential_id = t.id::text)`,
    [value],
    `credential-popout-${by}`,
  );
  if (row === undefined) return unauthorized;
  if (row.expires_at !== null && row.expires_at <= now) return expired;
  const held = grantedBy(row as RoleRow);
  return {
    failure: null,
    caller: {
      kind: 'popout',
      user_id: row.user_id,
      account_id: row.account_id,
      credential_id: row.id,
      permissions: new Set((row.scope as string[]).filter((name) => held.has(name))),
      admin_permissions: NO_PERMISSIONS,
      user_permissions: NO_PERMISSIONS,
      rate_bucket: `token:${row.token_hash}`,
      rate_limit: contextOf('popout').rate,
      expires_at: row.expires_at,
    },
  };
}

/** The same for a session of the token, which ends by itself at `ends_at` (Unix milliseconds). */
export async function findPopoutSession(db: Queryable, id: string, ends_at: number, now: number): Promise<Recognised> {
  const found = await findPopoutToken(db, 'id', id, now);
  if (found.caller === null) return found;
  const expires_at = Math.min(ends_at, found.caller.expires_at ?? Infinity);
  return { failure: null, caller: { ...found.caller, expires_at } };
}
