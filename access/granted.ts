import { ACCOUNT_PERMISSIONS, ADMIN_PERMISSIONS, expandGrants, isAdminPermission } from '../domain/permissions';
import type { Caller } from './caller';
import { setOf } from './interned';

const ALL: ReadonlySet<string> = new Set(ACCOUNT_PERMISSIONS);
const NONE: ReadonlySet<string> = new Set();

/** The columns of `account_roles` that say what a role grants; null where a left join found no role. */
export interface RoleRow {
  permissions: string[] | null;
  holds_all: boolean | null;
}

/** What a role grants. Source: spec doc1 §5.10. */
export const grantedBy = ({ permissions, holds_all }: RoleRow): ReadonlySet<string> =>
  holds_all ? ALL : permissions === null ? NONE : setOf(permissions);

const ALL_OF_ADMIN: ReadonlySet<string> = new Set(ADMIN_PERMISSIONS);

/** What the admin roles of a user list, together. */
export interface AdminRow {
  super_admin: boolean;
  admin_permissions: string[];
}

/** What a user's admin roles grant; a string of no registry grants nothing. Source: spec doc1 §5.11. */
export const grantedToAdmin = ({ super_admin, admin_permissions }: AdminRow): ReadonlySet<string> =>
  super_admin ? ALL_OF_ADMIN : setOf(admin_permissions.filter(isAdminPermission));

/**
 * The first of these admin permissions that the caller does not hold, and so may not hand on; undefined when there is
 * none. Source: spec rulings, "roles".
 */
export function lackedByAdmin(caller: Caller, wanted: Iterable<string>): string | undefined {
  const held =
    caller.kind === 'system_key'
      ? new Set(expandGrants(caller.permissions, ADMIN_PERMISSIONS))
      : caller.admin_permissions;
  return [...wanted].find((name) => !held.has(name));
}
