import type { Row } from '../../engines/postgres/port';
import { expired, NO_PERMISSIONS, unauthorized, type Caller, type CallerKind, type Recognised } from './caller';
import { contextOf } from './contexts';
import { internSet, internString } from './memory/intern';

/** The column `expires_at` of a key or token in Unix milliseconds. */
export const EXPIRES_AT = '(extract(epoch from expires_at) * 1000)::float8 as expires_at';

/** Caller of a key's or token's row; refused without a row and after its expiry. */
export function callerFromKeyRow(
  kind: CallerKind,
  row: Row | undefined,
  now: number,
  { rate_bucket, ...particular }: Pick<Caller, 'rate_bucket'> & Partial<Caller>,
): Recognised {
  if (row === undefined) return unauthorized;
  if (row.expires_at !== null && row.expires_at <= now) return expired;
  const caller: Caller = {
    kind,
    user_id: row.user_id ?? null,
    account_id: internString(row.account_id),
    credential_id: row.id,
    permissions: internSet(row.permissions ?? []),
    admin_permissions: NO_PERMISSIONS,
    user_permissions: NO_PERMISSIONS,
    rate_bucket,
    rate_limit: contextOf(kind).rate,
    expires_at: row.expires_at,
  };
  // No spread: an object made by a spread takes a third more memory, for each open socket.
  return { failure: null, caller: Object.assign(caller, particular) };
}
