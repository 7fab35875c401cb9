import type { Giver } from '../domain/account-roles';
import { expandGrants } from '../domain/permissions';
import type { Caller } from './caller';
import { forbidden, invalid } from '../kernel/operation-errors';

/** What a caller may give on the account that they act on: what their credential holds there. */
export const giverOf = ({ kind, user_id, permissions }: Caller): NonNullable<Giver> => ({
  user_id,
  permissions: kind === 'system_key' ? expandGrants(permissions) : permissions,
});

/** What every operation refuses that gives permissions away. Source: spec rulings, "permission strings", "roles". */
export const GIVING_ERRORS = {
  UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}'),
  PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}'),
};
