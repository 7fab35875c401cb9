import { isUserRolePermission, USER_PERMISSIONS } from '../../domain/common/permissions';
import { internSet } from './memory/intern';

/** SQL: permissions of the role of `user_id`; null while there are no roles. */
export const userPermissionsOf = (user_id: string): string => `coalesce(
  (select r.permissions from user_role_holders h join user_roles r on r.id = h.role_id where h.user_id = ${user_id}),
  (select permissions from user_roles where is_default))`;

const MEMBER: ReadonlySet<string> = new Set(USER_PERMISSIONS);

/** Permissions of a user regardless of account. Source: spec doc1 §5.12. */
export const grantedToUser = (permissions: string[] | null): ReadonlySet<string> =>
  permissions === null ? MEMBER : internSet(permissions.filter(isUserRolePermission));
