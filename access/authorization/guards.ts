import type { Narrowing } from '../../kernel/operations/guarded';

/**
 * Guards are data: OpenAPI shows them, tests walk them, one function enforces them. Order of checks: spec rulings,
 * "order of checks".
 */
export type Guard =
  | { kind: 'public' }
  | { kind: 'signed_link'; file: LinkedKind }
  | { kind: 'authenticated' }
  | { kind: 'first_party' }
  | { kind: 'system_key' }
  | { kind: 'popout' }
  | { kind: 'account'; member: string; active?: true }
  | { kind: 'feature'; flag: string }
  | { kind: 'permission'; permission: string }
  | { kind: 'permission_by'; member: string; permissions: Readonly<Record<string, string>> }
  | { kind: 'admin_permission'; permission: string }
  | { kind: 'user_permission'; permission: string };

export const publicAccess: Guard = { kind: 'public' };
/** Files of accounts that signed links open. */
export type LinkedKind = 'sound' | 'upload';
/**
 * Lets pass whoever sends a valid `signature` of the file `id`, and acts for its account; whoever sends none, or one
 * that opens nothing, is judged by the other guards. Features are always judged. Source: ruling c17.
 */
export const signedLink = (file: LinkedKind): Guard => ({ kind: 'signed_link', file });
export const authenticated: Guard = { kind: 'authenticated' };
export const firstParty: Narrowing<Guard, { user_id: string }> = { kind: 'first_party' };
export const systemKeyOnly: Guard = { kind: 'system_key' };
/** A popout token or a session of one. */
export const popoutOnly: Narrowing<Guard, { account_id: string; credential_id: string }> = { kind: 'popout' };
/**
 * Judges the caller's rights on the account that this input member names; feature and permission guards use those
 * rights. A non-member gets the same refusal whether or not the account exists. Source: spec rulings, "accounts in
 * paths".
 */
export const account = (member: string): Narrowing<Guard, { account_id: string }> => ({ kind: 'account', member });
/** {@link account}; in a session the account must also be the active one. Source: spec doc2 §4.2 "Accounts". */
export const activeAccount = (member: string): Narrowing<Guard, { account_id: string }> => ({
  kind: 'account',
  member,
  active: true,
});
export const feature = (flag: string): Guard => ({ kind: 'feature', flag });
export const permission = (name: string): Narrowing<Guard, { account_id: string }> => ({
  kind: 'permission',
  permission: name,
});
/** The permission that this input member chooses by its value. */
export const permissionBy = (
  member: string,
  permissions: Readonly<Record<string, string>>,
): Narrowing<Guard, { account_id: string }> => ({ kind: 'permission_by', member, permissions });
export const adminPermission = (name: string): Guard => ({ kind: 'admin_permission', permission: name });
export const userPermission = (name: string): Guard => ({ kind: 'user_permission', permission: name });

/** Permissions that a member's values choose, for documents: `chat:ban (BAN), chat:delete (DELETE)`. */
export const chosenText = ({ permissions }: Guard & { kind: 'permission_by' }): string =>
  Object.entries(permissions)
    .map(([value, name]) => `${name} (${value})`)
    .join(', ');
