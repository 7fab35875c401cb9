import { LRUCache } from 'lru-cache';
import type { Database } from '../../engines/postgres/port';
import type { Caller } from '../authentication/caller';
import { batchLookups, type CredentialLookup } from '../authentication/memory/credential-lookups';
import type { Revocation } from '../authentication/revocations';
import { grantedBy, type RoleRow } from './role-grants';

const REMEMBER_MS = 900;
const REMEMBERED_BYTES = 8 * 1024 * 1024;
/** Approximate bytes of an account id in a set, and of an empty entry. */
const BYTES = { id: 120, entry: 500 } as const;

export interface MemberPermissions {
  /**
   * Permissions of a user's role on any account they belong to; null for other accounts, and for a credential that is
   * bound to one account. The user's accounts are cached for 0.9 s, so that made-up account ids cost no query each.
   * Spec doc3 §4.1 "Permission(perm) on the account in the channel name".
   */
  permissionsOn(caller: Caller, account_id: string): Promise<ReadonlySet<string> | null>;
  forget(revocation: Partial<Revocation>): void;
}

const ACCOUNTS: CredentialLookup<{ user_id: string }, ReadonlySet<string>> = {
  name: 'member-accounts',
  takes: { user_id: 'uuid' },
  sql: ({ user_id }) => `select array_agg(account_id) as accounts from account_members where user_id = ${user_id}`,
  found: (row) => new Set<string>(row?.accounts),
};

const PERMISSIONS: CredentialLookup<{ user_id: string; account_id: string }, ReadonlySet<string> | null> = {
  name: 'member-permissions',
  takes: { user_id: 'uuid', account_id: 'uuid' },
  sql: ({ user_id, account_id }) =>
    `select r.permissions, r.holds_all from account_members m join account_roles r on r.id = m.role_id
     where m.user_id = ${user_id} and m.account_id = ${account_id}`,
  found: (row) => (row ? grantedBy(row as RoleRow) : null),
};

export function createMemberPermissions({ db }: { db: Database }): MemberPermissions {
  const remembered = new LRUCache<string, { accounts: ReadonlySet<string>; at: number }>({
    maxSize: REMEMBERED_BYTES,
    sizeCalculation: ({ accounts }) => BYTES.entry + BYTES.id * accounts.size,
  });
  const loading = new Map<string, Promise<ReadonlySet<string>>>();

  const ask = batchLookups(db);

  async function load(user_id: string): Promise<ReadonlySet<string>> {
    const at = performance.now();
    const accounts = await ask(ACCOUNTS, { user_id });
    remembered.set(user_id, { accounts, at });
    return accounts;
  }

  async function accountsOf(user_id: string): Promise<ReadonlySet<string>> {
    const known = remembered.get(user_id);
    if (known && performance.now() - known.at < REMEMBER_MS) return known.accounts;
    let started = loading.get(user_id);
    if (!started) {
      started = load(user_id).finally(() => loading.delete(user_id));
      loading.set(user_id, started);
    }
    return started;
  }

  return {
    async permissionsOn(caller, account_id) {
      const { kind, user_id, client } = caller;
      if (kind !== 'jwt' || client || user_id === null || !(await accountsOf(user_id)).has(account_id)) return null;
      return ask(PERMISSIONS, { user_id, account_id });
    },
    forget({ user_id }) {
      if (user_id) remembered.delete(user_id);
    },
  };
}
