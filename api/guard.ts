import type { Caller } from '../access/caller';
import { CONTEXTS } from '../access/contexts';
import { holds, isFirstParty } from '../access/grants';
import type { Guard } from '../access/guards';
import type { Operation } from '../access/operation';
import type { Services } from '../access/services';
import { ApiError } from '../kernel/errors';
import { shapeOf } from './schema-shape';

/** The texts that both protocols answer refusals with. Source: spec rulings, "guard messages". */
export const GUARD_MESSAGES = {
  unauthenticated: 'Authentication required',
  first_party: 'This action requires a logged-in user',
  system_key: 'This action requires a system key',
  popout: 'This action requires a popout session',
  permission: (name: string) => `Missing permission: ${name}`,
  feature: (flag: string) => `Feature not enabled: ${flag}`,
  account: 'An account is required: send its id in the X-Lumio-Account header',
  no_account: 'Account not found',
  member: 'This action requires membership of the account',
  active: 'This action requires the account to be the active one',
} as const;

/** Guards of one operation, sorted into the order in which they are checked. */
export interface Gate {
  readonly open: boolean;
  readonly first_party: boolean;
  readonly system_key: boolean;
  readonly popout: boolean;
  readonly features: readonly string[];
  readonly permissions: readonly (Guard & { permission: string })[];
  /** True when a caller without an account cannot be served. */
  readonly needs_account: boolean;
  /** The input's member that names the account; null where the caller's own is acted on. */
  readonly account: string | null;
  /** True when a session must have that account as its active one. */
  readonly active: boolean;
  /** True for what operators do: it belongs to no account but one that it names, whichever is their active one. */
  readonly of_operators: boolean;
}

/** What a gate looks up. */
export type GateServices = Pick<Services, 'features' | 'accounts'>;

/** A caller that was let pass, with the rights on the account that the operation acts on. */
export interface Entry {
  readonly caller: Caller;
  /** False when a system key names an account that does not exist, which it is told after its input was judged. */
  readonly exists: boolean;
}

/** Reads an operation's guards once, at start. */
export function gateOf({ guard: guards }: Pick<Operation, 'guard'>): Gate {
  const permissions = guards.filter((guard): guard is Guard & { permission: string } => 'permission' in guard);
  const named = guards.find((guard) => guard.kind === 'account');
  const account = named?.member ?? null;
  return {
    open: guards.every((guard) => guard.kind === 'public'),
    first_party: guards.some((guard) => guard.kind === 'first_party'),
    system_key: guards.some((guard) => guard.kind === 'system_key'),
    popout: guards.some((guard) => guard.kind === 'popout'),
    features: guards.flatMap((guard) => (guard.kind === 'feature' ? [guard.flag] : [])),
    permissions,
    needs_account: account === null && permissions.some((guard) => guard.kind === 'permission'),
    account,
    of_operators: account === null && permissions.some((guard) => guard.kind === 'admin_permission'),
    active: named?.active ?? false,
  };
}

/**
 * Holds that an account which path or input names is judged by a guard. Administrators act on any account, and what is
 * public is no member's.
 * @throws Error naming the operation
 */
export function holdAccountGuard({ name, rest, input }: Pick<Operation, 'name' | 'rest' | 'input'>, gate: Gate): void {
  const members = shapeOf(input, 'input');
  if (gate.account !== null && !(gate.account in members)) {
    throw new Error(`${name}: its account guard names ${gate.account}, which is no member of its input`);
  }
  if (gate.open || gate.permissions.some(({ kind }) => kind === 'admin_permission')) return;
  const named = /\/accounts\/\{(\w+)\}/.exec(rest?.path ?? '')?.[1] ?? ('account_id' in members ? 'account_id' : null);
  if (named !== null && gate.account !== named) {
    throw new Error(`${name}: its input names an account (${named}), but no account guard takes rights for it`);
  }
}

/**
 * Lets the caller pass or throws the {@link ApiError} that it gets, in the order of spec rulings "order of checks":
 * credential, first-party gate, feature, permission. Returns a promise only when something has to be looked up.
 * @param named what the request holds where it names the account
 */
export function authorise(
  gate: Gate,
  caller: Caller,
  services: GateServices,
  named: () => unknown = () => undefined,
): Promise<Entry> | Entry {
  if (gate.open) return { caller, exists: true };
  if (caller.kind === 'anonymous') throw new ApiError('UNAUTHORIZED', GUARD_MESSAGES.unauthenticated);
  if (gate.first_party && !isFirstParty(caller)) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.first_party);
  }
  if (gate.system_key && caller.kind !== 'system_key') throw new ApiError('FORBIDDEN', GUARD_MESSAGES.system_key);
  if (gate.popout && caller.kind !== 'popout') throw new ApiError('FORBIDDEN', GUARD_MESSAGES.popout);
  if (gate.permissions.length === 0 && !CONTEXTS[caller.kind].rbac) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.first_party);
  }
  if (gate.account !== null) return authoriseOn(named(), gate, caller, services);
  if (caller.kind === 'system_key' && caller.account_id === null && gate.needs_account) {
    // Which features are on depends on the account, which is what is missing.
    checkPermissions(gate, caller);
    throw new ApiError('BAD_REQUEST', GUARD_MESSAGES.account);
  }
  if (gate.features.length === 0) {
    checkPermissions(gate, caller);
    return { caller, exists: true };
  }
  const entry = { caller, exists: true };
  const checked = checkFeatures(gate, caller, services);
  return checked === undefined ? entry : checked.then(() => entry);
}

async function authoriseOn(named: unknown, gate: Gate, asked_by: Caller, services: GateServices): Promise<Entry> {
  const { caller, exists } = await services.accounts.on(asked_by, named);
  if (caller === null) throw new ApiError('FORBIDDEN', strangersText(gate));
  if (gate.active && asked_by.kind === 'jwt' && caller.account_id !== asked_by.account_id) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.active);
  }
  // No account, no features: only what the key holds can be judged.
  if (exists && gate.features.length > 0) await checkFeatures(gate, caller, services);
  else checkPermissions(gate, caller);
  return { caller, exists };
}

/** The words for strangers: those for a member who lacks a permission, so that no account shows that it exists. */
function strangersText(gate: Gate): string {
  const missing = gate.permissions.find(({ kind }) => kind === 'permission');
  return missing ? GUARD_MESSAGES.permission(missing.permission) : GUARD_MESSAGES.member;
}

/** Features from the given one on, then permissions. Returns a promise only when something has to be looked up. */
function checkFeatures(gate: Gate, caller: Caller, services: GateServices, from = 0): Promise<void> | undefined {
  for (let at = from; at < gate.features.length; at += 1) {
    const flag = gate.features[at]!;
    const enabled = services.features.enabled(flag, caller.account_id);
    if (enabled instanceof Promise) {
      return enabled.then((on) => {
        holdFeature(flag, on);
        return checkFeatures(gate, caller, services, at + 1);
      });
    }
    holdFeature(flag, enabled);
  }
  checkPermissions(gate, caller);
  return undefined;
}

function holdFeature(flag: string, on: boolean): void {
  if (!on) throw new ApiError('FEATURE_DISABLED', GUARD_MESSAGES.feature(flag));
}

function checkPermissions(gate: Gate, caller: Caller): void {
  for (const guard of gate.permissions) {
    if (!holds(caller, scopeOf(guard, caller), guard.permission)) {
      throw new ApiError('FORBIDDEN', GUARD_MESSAGES.permission(guard.permission));
    }
  }
  if (gate.needs_account && caller.account_id === null) throw new ApiError('BAD_REQUEST', GUARD_MESSAGES.account);
}

/** Scopes never mix (spec rulings c03); a system key is checked against its one list (doc1 §5.9). */
function scopeOf(guard: Guard, caller: Caller): ReadonlySet<string> {
  if (caller.kind === 'system_key' || guard.kind === 'permission') return caller.permissions;
  return guard.kind === 'admin_permission' ? caller.admin_permissions : caller.user_permissions;
}
