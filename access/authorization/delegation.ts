import type { Grantor } from '../../domain/accounts/roles';
import { expandGrants } from '../../domain/common/permissions';
import { actorOf, type Caller } from '../authentication/caller';
import { forbidden, invalid } from '../../kernel/operations/errors';

/**
 * Permissions that a caller may grant on the account: those of the credential. A popout token grants in its maker's
 * name, so that an invite ends with the maker and not with the member that the token acts for.
 */
export const grantorOf = (caller: Caller): NonNullable<Grantor> => ({
  user_id: actorOf(caller).user_id,
  permissions: caller.kind === 'system_key' ? expandGrants(caller.permissions) : caller.permissions,
});

/** The service key that a caller is, with which ends what it makes; null for other callers. */
export const serviceKeyOf = ({ kind, credential_id }: Caller): string | null =>
  kind === 'service_key' ? credential_id : null;

/** Errors of every operation that grants permissions. Source: spec rulings, "permission strings", "roles". */
export const GRANT_ERRORS = {
  UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}'),
  PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}'),
};
