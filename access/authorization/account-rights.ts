import type { Database, Row } from '../../engines/postgres/port';
import { isUuid } from '../../lib/hash/uuid';
import type { Caller } from '../authentication/caller';
import { grantedBy, type RoleRow } from './role-grants';

/** The caller on the account that a request names. */
export interface OnAccount {
  /** With that account's id and the rights held on it; null for a caller without rights there. */
  caller: Caller | null;
  /** False only for a system key that names an unknown account; that refusal follows the validation of the input. */
  exists: boolean;
}

/** Resolves a caller's rights on the account that path or input names. Source: spec rulings, "accounts in paths". */
export interface AccountRights {
  /**
   * `named` is the raw member of the request, of any type. A person costs one query, the same for foreign, unknown and
   * malformed ids; a credential that is bound to one account costs none.
   */
  on(caller: Caller, named: unknown): Promise<OnAccount>;
}

/** Replaces a malformed id, so that it costs the same query; no account has this id. */
const NOBODYS = '00000000-0000-0000-0000-000000000000';

export function createAccountRights({ db }: { db: Pick<Database, 'query'> }): AccountRights {
  /** Current permissions of the user's role; null for a non-member. */
  async function asMember(user_id: string, account_id: string): Promise<ReadonlySet<string> | null> {
    const [row] = await db.query<RoleRow & Row>(
      `select r.permissions, r.holds_all from account_members m join account_roles r on r.id = m.role_id
       where m.user_id = $1 and m.account_id = $2`,
      [user_id, account_id],
      'rights-of-member',
    );
    return row ? grantedBy(row) : null;
  }

  return {
    async on(caller, named) {
      const account_id = typeof named === 'string' && isUuid(named) ? named.toLowerCase() : NOBODYS;
      if (caller.kind === 'system_key') {
        const [account] = await db.query('select 1 from accounts where id = $1', [account_id], 'rights-account');
        return { caller: { ...caller, account_id: account ? account_id : null }, exists: account !== undefined };
      }
      // A client's grant is bound to one account, as a key is.
      if (caller.kind === 'jwt' && caller.user_id !== null && !caller.client) {
        const permissions = await asMember(caller.user_id, account_id);
        return { caller: permissions && { ...caller, account_id, permissions }, exists: true };
      }
      return { caller: caller.account_id === account_id ? caller : null, exists: true };
    },
  };
}
