import type { Giver } from '../domain/roles';
import { expandGrants } from '../domain/permissions';
import type { Caller } from './caller';
import { forbidden, invalid } from '../kernel/operation-errors';

/**
 * What a caller may give on the account that they act on: what their credential holds there. A popout token gives in
 * its maker's name, so that an invite ends with who made it and not with whom the token acts for.
 */
export const giverOf = ({ kind, user_id, made_by, permissions }: Caller): NonNullable<Giver> => ({
  user_id: made_by ?? user_id,
  permissions: kind === 'system_key' ? expandGrants(permissions) : permissions,
});

/** What every operation refuses that gives permissions away. Source: spec rulings, "permission strings", "roles". */
export const GIVING_ERRORS = {
  UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}'),
  PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}'),
};
