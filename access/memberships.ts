import type { Database } from '../engines/postgres/port';
import type { Caller } from './caller';

/** Permissions of a user's role on any account they belong to; null when they do not, or when the credential is bound to one account. Spec doc3 §4.1 "Permission(perm) on the account in the channel name". */
export function createMemberPermissions(deps: { db: Database }) {
  return async (caller: Caller, account_id: string): Promise<ReadonlySet<string> | null> => {
    if (caller.kind !== 'jwt' || caller.user_id === null || !UUID.test(account_id)) return null;
    const [row] = await deps.db.query(
      `select r.permissions from account_members m join account_roles r on r.id = m.role_id
       where m.user_id = $1 and m.account_id = $2`,
      [caller.user_id, account_id],
      'member-permissions',
    );
    return row ? new Set<string>(row.permissions) : null;
  };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
