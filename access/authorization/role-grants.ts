import {
  ACCOUNT_PERMISSIONS,
  ADMIN_PERMISSIONS,
  expandGrants,
  isAdminPermission,
} from '../../domain/common/permissions';
import type { Caller } from '../authentication/caller';
import { internSet } from '../authentication/memory/intern';

const ALL: ReadonlySet<string> = new Set(ACCOUNT_PERMISSIONS);
const NONE: ReadonlySet<string> = new Set();

/** Columns of `account_roles` with a role's permissions; null where a left join found no role. */
export interface RoleRow {
  permissions: string[] | null;
  holds_all: boolean | null;
}

/** Permissions of a role. Source: spec doc1 §5.10. */
export const grantedBy = ({ permissions, holds_all }: RoleRow): ReadonlySet<string> =>
  holds_all ? ALL : permissions === null ? NONE : internSet(permissions);

const ALL_OF_ADMIN: ReadonlySet<string> = new Set(ADMIN_PERMISSIONS);

/** Union of the permissions in a user's admin roles. */
export interface AdminRow {
  super_admin: boolean;
  admin_permissions: string[];
}

/** Permissions of a user's admin roles; an unregistered string grants nothing. Source: spec doc1 §5.11. */
export const grantedToAdmin = ({ super_admin, admin_permissions }: AdminRow): ReadonlySet<string> =>
  super_admin ? ALL_OF_ADMIN : internSet(admin_permissions.filter(isAdminPermission));

/**
 * The first of these admin permissions that the caller does not hold, and so may not grant; undefined without any.
 * Source: spec rulings, "roles".
 */
export function firstMissingAdminPermission(caller: Caller, wanted: Iterable<string>): string | undefined {
  const held =
    caller.kind === 'system_key'
      ? new Set(expandGrants(caller.permissions, ADMIN_PERMISSIONS))
      : caller.admin_permissions;
  return [...wanted].find((name) => !held.has(name));
}
