import type { Caller } from './caller';

/**
 * Guards are data: OpenAPI shows them, tests walk them, one function enforces them. Order of checks: spec rulings,
 * "order of checks".
 */
export type Guard =
  | { kind: 'public' }
  | { kind: 'authenticated' }
  | { kind: 'first_party' }
  | { kind: 'system_key' }
  | { kind: 'feature'; flag: string }
  | { kind: 'permission'; permission: string }
  | { kind: 'admin_permission'; permission: string }
  | { kind: 'user_permission'; permission: string };

/**
 * A guard, and what is known of a caller that it let pass: `permission()` leaves none without an account, `firstParty`
 * none without a user.
 */
export type Narrowing<Known> = Guard & { readonly known?: Known };

/** At least one: leaving the guard out does not compile. */
export type Guards = readonly [Guard, ...Guard[]];

type KnownOf<G> = G extends { readonly known?: infer Known } ? NonNullable<Known> : unknown;
/** One function per guard: inferring the argument of all of them at once gives the intersection of what is known. */
type AllKnown<G> = (G extends unknown ? (known: KnownOf<G>) => void : never) extends (known: infer Every) => void
  ? Every
  : never;

/** The caller as an operation with these guards meets it. */
export type Admitted<G extends Guards> = Caller & AllKnown<G[number]>;

export const publicAccess: Guard = { kind: 'public' };
export const authenticated: Guard = { kind: 'authenticated' };
export const firstParty: Narrowing<{ user_id: string }> = { kind: 'first_party' };
export const systemKeyOnly: Guard = { kind: 'system_key' };
export const feature = (flag: string): Guard => ({ kind: 'feature', flag });
export const permission = (name: string): Narrowing<{ account_id: string }> => ({
  kind: 'permission',
  permission: name,
});
export const adminPermission = (name: string): Guard => ({ kind: 'admin_permission', permission: name });
export const userPermission = (name: string): Guard => ({ kind: 'user_permission', permission: name });
