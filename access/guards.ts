import type { Narrowing } from '../kernel/guarded';

/**
 * Guards are data: OpenAPI shows them, tests walk them, one function enforces them. Order of checks: spec rulings,
 * "order of checks".
 */
export type Guard =
  | { kind: 'public' }
  | { kind: 'authenticated' }
  | { kind: 'first_party' }
  | { kind: 'system_key' }
  | { kind: 'popout' }
  | { kind: 'account'; member: string; active?: true }
  | { kind: 'feature'; flag: string }
  | { kind: 'permission'; permission: string }
  | { kind: 'admin_permission'; permission: string }
  | { kind: 'user_permission'; permission: string };

export const publicAccess: Guard = { kind: 'public' };
export const authenticated: Guard = { kind: 'authenticated' };
export const firstParty: Narrowing<Guard, { user_id: string }> = { kind: 'first_party' };
export const systemKeyOnly: Guard = { kind: 'system_key' };
/** A popout token or a session of one. */
export const popoutOnly: Narrowing<Guard, { account_id: string; credential_id: string }> = { kind: 'popout' };
/**
 * The input's member names the account that the operation acts on: the caller's rights are taken for it, and feature
 * and permission guards judge those. Who is no member is refused alike whether it exists or not. Source: spec rulings,
 * "accounts in paths".
 */
export const account = (member: string): Narrowing<Guard, { account_id: string }> => ({ kind: 'account', member });
/** {@link account}, and for a session it must be the active one. Source: spec doc2 §4.2 "Accounts". */
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
export const adminPermission = (name: string): Guard => ({ kind: 'admin_permission', permission: name });
export const userPermission = (name: string): Guard => ({ kind: 'user_permission', permission: name });
