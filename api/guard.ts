import type { Caller } from '../access/caller';
import { CONTEXTS } from '../access/contexts';
import type { Guard } from '../access/guards';
import type { Operation } from '../access/operation';
import type { FeatureFlags } from '../access/services';
import { ApiError } from '../kernel/errors';

/** The texts that both protocols answer refusals with. Source: spec rulings, "guard messages". */
export const GUARD_MESSAGES = {
  unauthenticated: 'Authentication required',
  first_party: 'This action requires a logged-in user',
  system_key: 'This action requires a system key',
  permission: (name: string) => `Missing permission: ${name}`,
  feature: (flag: string) => `Feature not enabled: ${flag}`,
  account: 'An account is required: send its id in the X-Lumio-Account header',
} as const;

/**
 * Whether `granted` holds `name`; a system key's `resource:*` stands for every action of that resource, `*:*` for
 * nothing but itself. Source: spec doc1 §5.4.
 */
export function holds(caller: Caller, granted: ReadonlySet<string>, name: string): boolean {
  if (granted.has(name)) return CONTEXTS[caller.kind].rbac;
  return caller.kind === 'system_key' && granted.has(`${name.slice(0, name.indexOf(':'))}:*`);
}

/** Guards of one operation, sorted into the order in which they are checked. */
export interface Gate {
  readonly open: boolean;
  readonly first_party: boolean;
  readonly system_key: boolean;
  readonly features: readonly string[];
  readonly permissions: readonly (Guard & { permission: string })[];
  /** True when a caller without an account cannot be served. */
  readonly needs_account: boolean;
}

/** Reads an operation's guards once, at start. */
export function gateOf(operation: Pick<Operation, 'guard' | 'account'>): Gate {
  const guards = operation.guard;
  const permissions = guards.filter((guard): guard is Guard & { permission: string } => 'permission' in guard);
  return {
    open: guards.every((guard) => guard.kind === 'public'),
    first_party: guards.some((guard) => guard.kind === 'first_party'),
    system_key: guards.some((guard) => guard.kind === 'system_key'),
    features: guards.flatMap((guard) => (guard.kind === 'feature' ? [guard.flag] : [])),
    permissions,
    needs_account: operation.account !== 'input' && permissions.some((guard) => guard.kind === 'permission'),
  };
}

/**
 * Lets the caller pass or throws the {@link ApiError} that it gets, in the order of spec rulings "order of checks":
 * credential, first-party gate, feature, permission. Returns a promise only when a feature has to be looked up.
 */
export function authorise(gate: Gate, caller: Caller, features: FeatureFlags): Promise<void> | undefined {
  if (gate.open) return undefined;
  if (caller.kind === 'anonymous') throw new ApiError('UNAUTHORIZED', GUARD_MESSAGES.unauthenticated);
  if (gate.first_party && !CONTEXTS[caller.kind].first_party) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.first_party);
  }
  if (gate.system_key && caller.kind !== 'system_key') throw new ApiError('FORBIDDEN', GUARD_MESSAGES.system_key);
  if (caller.kind === 'system_key' && caller.account_id === null && gate.needs_account) {
    // Which features are on depends on the account, which is what is missing.
    checkPermissions(gate, caller);
    throw new ApiError('BAD_REQUEST', GUARD_MESSAGES.account);
  }
  if (gate.features.length === 0) {
    checkPermissions(gate, caller);
    return undefined;
  }
  return checkFeatures(gate, caller, features);
}

async function checkFeatures(gate: Gate, caller: Caller, features: FeatureFlags): Promise<void> {
  for (const flag of gate.features) {
    if (!(await features.enabled(flag, caller.account_id))) {
      throw new ApiError('FEATURE_DISABLED', GUARD_MESSAGES.feature(flag));
    }
  }
  checkPermissions(gate, caller);
}

function checkPermissions(gate: Gate, caller: Caller): void {
  for (const guard of gate.permissions) {
    if (!holds(caller, scopeOf(guard, caller), guard.permission)) {
      throw new ApiError('FORBIDDEN', GUARD_MESSAGES.permission(guard.permission));
    }
  }
  if (gate.needs_account && caller.account_id === null) throw new ApiError('BAD_REQUEST', GUARD_MESSAGES.account);
  if (gate.permissions.length === 0 && !CONTEXTS[caller.kind].rbac) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.first_party);
  }
}

/** Scopes never mix (spec rulings c03); a system key is checked against its one list (doc1 §5.9). */
function scopeOf(guard: Guard, caller: Caller): ReadonlySet<string> {
  if (caller.kind === 'system_key' || guard.kind === 'permission') return caller.permissions;
  return guard.kind === 'admin_permission' ? caller.admin_permissions : caller.user_permissions;
}
