import type { Queryable } from '../engines/postgres/port';
import { NO_PERMISSIONS, type Recognised } from './caller';
import { EXPIRES_AT, foundKey } from './found-keys';
import { setOf } from './interned';
import { askAlone, type Ask, type Question } from './questions';
import { grantedBy, type RoleRow } from './granted';

/** What a popout token is asked for by, at `now` (Unix milliseconds). */
interface AskedToken {
  value: string;
  now: number;
}

/**
 * Who a popout token is: its list, as far as its creator holds it now, on its account. It ends with the membership of
 * who made it and of whom it acts for: neither leaves a way back behind. Source: spec doc1 §5.5.
 */
const tokenBy = (by: 'token_hash' | 'id', type: 'text' | 'uuid'): Question<AskedToken, Recognised> => ({
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
    return foundKey('popout', row, now, {
      permissions: setOf(((row?.scope ?? []) as string[]).filter((name) => held.has(name))),
      rate_bucket: `token:${row?.token_hash}`,
      made_by: row?.created_by as string | undefined,
    });
  },
});
export const POPOUT_TOKEN = { token_hash: tokenBy('token_hash', 'text'), id: tokenBy('id', 'uuid') };

/** Who the token of this hash is. */
export const findPopoutToken = (db: Queryable, token_hash: string, now: number): Promise<Recognised> =>
  askAlone(db)(POPOUT_TOKEN.token_hash, { value: token_hash, now });

/** Who a session of the token is, which ends by itself at `ends_at` (Unix milliseconds). */
export async function findPopoutSession(ask: Ask, id: string, ends_at: number, now: number): Promise<Recognised> {
  const found = await ask(POPOUT_TOKEN.id, { value: id, now });
  if (found.caller === null) return found;
  const expires_at = Math.min(ends_at, found.caller.expires_at ?? Infinity);
  return { failure: null, caller: { ...found.caller, expires_at } };
}
