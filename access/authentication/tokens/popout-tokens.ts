import type { Queryable } from '../../../engines/postgres/port';
import { NO_PERMISSIONS, type Recognised } from '../caller';
import { EXPIRES_AT, callerFromKeyRow } from '../key-rows';
import { internSet } from '../memory/intern';
import { runSingle, type LookupRunner, type CredentialLookup } from '../memory/credential-lookups';
import { grantedBy, type RoleRow } from '../../authorization/role-grants';

/** Input of the look-up; `now` in Unix milliseconds. */
interface AskedToken {
  value: string;
  now: number;
}

/**
 * Look-up of a popout token: the listed permissions that its creator still holds on the account. The token ends with
 * the membership of its creator and with that of the member it acts for, so that neither keeps access after leaving.
 * Source: spec doc1 §5.5.
 */
const tokenBy = (by: 'token_hash' | 'id', type: 'text' | 'uuid'): CredentialLookup<AskedToken, Recognised> => ({
  name: `credential-popout-${by}`,
  takes: { value: type },
  sql: ({ value }) =>
    `select t.id, t.token_hash, t.account_id, t.user_id, t.created_by, t.permissions as scope,
       ${EXPIRES_AT}, r.permissions, r.holds_all
     from popout_tokens t
       join account_members c on c.account_id = t.account_id and c.user_id = t.created_by
       join users u on u.id = t.created_by
       left join account_roles r on r.id = c.role_id
     where t.${by} = ${value} and t.revoked_at is null
       and (t.user_id is null or exists (
         select 1 from account_members m join users of on of.id = m.user_id
         where m.account_id = t.account_id and m.user_id = t.user_id))
       and not exists (select 1 from revocations v where v.credential_id = t.id::text)`,
  found(row, { now }) {
    const held = row === undefined ? NO_PERMISSIONS : grantedBy(row as RoleRow);
    return callerFromKeyRow('popout', row, now, {
      permissions: internSet(((row?.scope ?? []) as string[]).filter((name) => held.has(name))),
      rate_bucket: `token:${row?.token_hash}`,
      made_by: row?.created_by as string | undefined,
    });
  },
});
export const POPOUT_TOKEN = { token_hash: tokenBy('token_hash', 'text'), id: tokenBy('id', 'uuid') };

/** Caller of a popout token by its hash. */
export const findPopoutToken = (db: Queryable, token_hash: string, now: number): Promise<Recognised> =>
  runSingle(db)(POPOUT_TOKEN.token_hash, { value: token_hash, now });

/** Caller of a session of the token; it ends at `ends_at` (Unix milliseconds) at the latest. */
export async function findPopoutSession(
  ask: LookupRunner,
  id: string,
  ends_at: number,
  now: number,
): Promise<Recognised> {
  const found = await ask(POPOUT_TOKEN.id, { value: id, now });
  if (found.caller === null) return found;
  const expires_at = Math.min(ends_at, found.caller.expires_at ?? Infinity);
  return { failure: null, caller: { ...found.caller, expires_at, popout_session: true } };
}
