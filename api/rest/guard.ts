import type { z } from 'zod';
import type { Caller } from '../../access/authentication/caller';
import { CONTEXTS } from '../../access/authentication/contexts';
import { hasPermission, isFirstParty } from '../../access/authorization/permission-check';
import type { Guard, LinkedKind } from '../../access/authorization/guards';
import type { Bucket } from '../../access/limits/rate-buckets';
import type { Operation } from '../../app/operation';
import type { Services } from '../../app/services';
import { ApiError } from '../../kernel/errors';
import { accountOfLink } from '../../services/studio/file-links';
import { shapeOf } from '../openapi/schema-shape';

/** Texts of refusals on both protocols. Source: spec rulings, "guard messages". */
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

/** Guards of an operation, grouped for their order of checks. */
export interface RouteGuard {
  readonly open: boolean;
  /** The kind of files that signed links open in place of the other guards; null without one. */
  readonly linked: LinkedKind | null;
  /** True where everybody may call while the features are on, which are then those of the service. */
  readonly everybody: boolean;
  readonly first_party: boolean;
  readonly system_key: boolean;
  readonly popout: boolean;
  readonly features: readonly string[];
  readonly permissions: readonly (Guard & { permission: string })[];
  /** The input's member that chooses a further permission; null without one. */
  readonly chosen: (Guard & { kind: 'permission_by' }) | null;
  /** True when a caller without an account cannot be served. */
  readonly needs_account: boolean;
  /** The input's member with the account; null when the operation acts on the caller's own account. */
  readonly account: string | null;
  /** True when a session must have that account as its active account. */
  readonly active: boolean;
  /** True for operators' operations, which ignore the caller's active account. */
  readonly of_operators: boolean;
}

/** Services that a gate uses. */
export type GateServices = Pick<Services, 'features' | 'accounts' | 'hashes'>;

/** An admitted caller, with the rights on the account of the operation. */
export interface Entry {
  readonly caller: Caller;
  /** False when a system key names an unknown account; the 404 follows the validation of the input. */
  readonly exists: boolean;
  /** Where a signed link admitted the caller: the bucket of the account whose file it opens. */
  readonly link_bucket?: Bucket | undefined;
}

/** Requests by links to files of an account. */
const LINKS_PER_MINUTE = 600;

/** Reads an operation's guards once, at start. */
export function gateOf({ guard: guards }: Pick<Operation, 'guard'>): RouteGuard {
  const permissions = guards.filter((guard): guard is Guard & { permission: string } => 'permission' in guard);
  const named = guards.find((guard) => guard.kind === 'account');
  const account = named?.member ?? null;
  const chosen = guards.find((guard) => guard.kind === 'permission_by') ?? null;
  return {
    open: guards.every((guard) => guard.kind === 'public'),
    linked: guards.find((guard) => guard.kind === 'signed_link')?.file ?? null,
    everybody: guards.some((guard) => guard.kind === 'public'),
    first_party: guards.some((guard) => guard.kind === 'first_party'),
    system_key: guards.some((guard) => guard.kind === 'system_key'),
    popout: guards.some((guard) => guard.kind === 'popout'),
    features: guards.flatMap((guard) => (guard.kind === 'feature' ? [guard.flag] : [])),
    permissions,
    chosen,
    needs_account: account === null && (chosen !== null || permissions.some((guard) => guard.kind === 'permission')),
    account,
    of_operators: account === null && permissions.some((guard) => guard.kind === 'admin_permission'),
    active: named?.active ?? false,
  };
}

/**
 * Asserts that an account guard checks an account in path or input. Public operations and those of administrators, who
 * act on any account, are exempt.
 * @throws Error naming the operation
 */
export function holdAccountGuard(
  { name, rest, input }: Pick<Operation, 'name' | 'rest' | 'input'>,
  gate: RouteGuard,
): void {
  const members = shapeOf(input, 'input');
  if (gate.account !== null && !(gate.account in members)) {
    throw new Error(`${name}: its account guard names ${gate.account}, which is no member of its input`);
  }
  if (gate.chosen !== null) holdChosen(name, members, gate.chosen);
  if (gate.everybody || gate.permissions.some(({ kind }) => kind === 'admin_permission')) return;
  const named = /\/accounts\/\{(\w+)\}/.exec(rest?.path ?? '')?.[1] ?? ('account_id' in members ? 'account_id' : null);
  if (named !== null && gate.account !== named) {
    throw new Error(`${name}: its input names an account (${named}), but no account guard takes rights for it`);
  }
}

/** Asserts that each value of the member chooses a permission. */
function holdChosen(
  name: string,
  members: Readonly<Record<string, z.ZodType>>,
  { member, permissions }: Guard & { kind: 'permission_by' },
): void {
  const { options } = members[member] as z.ZodEnum;
  if (options.join() !== Object.keys(permissions).join()) {
    throw new Error(`${name}: its guard must name a permission for each value of ${member}`);
  }
}

/**
 * Admits the caller, or throws the {@link ApiError} of the first failed check, in the order of spec rulings "order of
 * checks": credential, first-party gate, feature, permission. Returns a promise only when a lookup is needed.
 * @param member returns the request's value of a member of the input
 */
export function authorise(
  declared: RouteGuard,
  caller: Caller,
  services: GateServices,
  member: (name: string) => unknown = () => undefined,
): Promise<Entry> | Entry {
  const gate =
    declared.chosen === null ? declared : withChosen(declared, declared.chosen, member(declared.chosen.member));
  if (gate.open) return { caller, exists: true };
  const signature = gate.linked === null ? undefined : member('signature');
  if (typeof signature === 'string') return authoriseLink(gate, signature, caller, services, member);
  if (gate.everybody) {
    const checked = checkFeatures(gate, { ...caller, account_id: null }, services);
    return checked === undefined ? { caller, exists: true } : checked.then(() => ({ caller, exists: true }));
  }
  if (caller.kind === 'anonymous') throw new ApiError('UNAUTHORIZED', GUARD_MESSAGES.unauthenticated);
  if (gate.first_party && !isFirstParty(caller)) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.first_party);
  }
  if (gate.system_key && caller.kind !== 'system_key') throw new ApiError('FORBIDDEN', GUARD_MESSAGES.system_key);
  if (gate.popout && caller.kind !== 'popout') throw new ApiError('FORBIDDEN', GUARD_MESSAGES.popout);
  if (gate.permissions.length === 0 && !CONTEXTS[caller.kind].rbac) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.first_party);
  }
  if (gate.account !== null) return authoriseOn(member(gate.account), gate, caller, services);
  if (caller.kind === 'system_key' && caller.account_id === null && gate.needs_account) {
    // Features cannot be checked without the account.
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

/** A caller with a signature: for the account of a valid link; else the link counts as none. */
async function authoriseLink(
  gate: RouteGuard,
  signature: string,
  caller: Caller,
  services: GateServices,
  member: (name: string) => unknown,
): Promise<Entry> {
  const link = { kind: gate.linked!, id: member('id'), expires: member('expires'), signature };
  const account_id = await accountOfLink(services.hashes, link, Date.now());
  if (account_id === null) return authorise({ ...gate, linked: null }, caller, services, member);
  const acting = { ...caller, account_id };
  await checkFeatures({ ...gate, permissions: [] }, acting, services);
  const link_bucket = { rate_bucket: `links:${account_id}`, rate_limit: LINKS_PER_MINUTE };
  return { caller: acting, exists: true, link_bucket };
}

/** The gate with the permission that the value chooses; the input's schema refuses any other value. */
function withChosen(
  gate: RouteGuard,
  { permissions: by_value }: Guard & { kind: 'permission_by' },
  value: unknown,
): RouteGuard {
  if (typeof value !== 'string' || !Object.hasOwn(by_value, value)) return gate;
  const permission = by_value[value]!;
  return { ...gate, permissions: [...gate.permissions, { kind: 'permission', permission }] };
}

async function authoriseOn(named: unknown, gate: RouteGuard, asked_by: Caller, services: GateServices): Promise<Entry> {
  const { caller, exists } = await services.accounts.on(asked_by, named);
  if (caller === null) throw new ApiError('FORBIDDEN', strangersText(gate));
  if (gate.active && asked_by.kind === 'jwt' && caller.account_id !== asked_by.account_id) {
    throw new ApiError('FORBIDDEN', GUARD_MESSAGES.active);
  }
  // An unknown account has no features: only the key's permissions are checked.
  if (exists && gate.features.length > 0) await checkFeatures(gate, caller, services);
  else checkPermissions(gate, caller);
  return { caller, exists };
}

/** Text for non-members: the one for a member without the permission, so that no account's existence is revealed. */
function strangersText(gate: RouteGuard): string {
  const missing = gate.permissions.find(({ kind }) => kind === 'permission');
  return missing ? GUARD_MESSAGES.permission(missing.permission) : GUARD_MESSAGES.member;
}

/** Checks features from index `from` on, then permissions. Returns a promise only when a lookup is needed. */
function checkFeatures(gate: RouteGuard, caller: Caller, services: GateServices, from = 0): Promise<void> | undefined {
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

function checkPermissions(gate: RouteGuard, caller: Caller): void {
  for (const guard of gate.permissions) {
    if (!hasPermission(caller, scopeOf(guard, caller), guard.permission)) {
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
