import { z } from 'zod';
import { event, instant } from '../../kernel/event';
import { DomainError } from '../../kernel/errors';
import type { Account, AccountEvent } from './accounts';
import { ACCOUNT_PERMISSIONS, DEFAULT_ROLES, isAccountPermission } from '../common/permissions';
import { comparableName, freeSlug } from '../common/slugs';
import { unreachable } from '../common/unreachable';

const account_id = z.uuid();
const role_id = z.uuid();

/** Members of a role that its creator chooses. */
const said = {
  name: z.string(),
  description: z.string().nullable(),
  color: z.string().describe('#rrggbb'),
};

/** A role as an account keeps it: its permissions are listed one by one, but the Owner's, who holds all there is. */
export const AccountRole = z.strictObject({
  role_id,
  slug: z.string(),
  ...said,
  is_system: z.boolean(),
  is_default: z.boolean(),
  permissions: z.array(z.string()).nullable().describe('Null: all, with those that come later'),
});
export type AccountRole = z.output<typeof AccountRole>;

/** Roles besides the four that an account is created with. Source: spec doc1 §5.9, extra-facts §5. */
export const roleEvents = {
  'account:role_created': event({
    account_id,
    role_id,
    slug: z.string(),
    ...said,
    position: z.int32(),
    permissions: z.array(z.string()),
    created_at: instant(),
  }),
  'account:role_changed': event({
    account_id,
    role_id,
    ...said,
    permissions: z.array(z.string()),
    changed_at: instant(),
  }),
  'account:role_deleted': event({ account_id, role_id, deleted_at: instant() }),
};

/** A role as decisions know it. */
export interface Role {
  slug: string;
  name: string;
  description: string | null;
  color: string;
  position: number;
  is_system: boolean;
  is_default: boolean;
  permissions: readonly string[] | null;
}

/**
 * Grantor of permissions: a credential grants none that it lacks, nor any that the member behind it does not hold at
 * that moment. Null for an operator. Source: spec rulings, "roles".
 */
export type Grantor = { user_id: string | null; permissions: Iterable<string> } | null;

interface RoleDetail {
  name: string;
  description: string | null;
  color: string;
  permissions: readonly string[];
}

export type RoleCommand =
  | ({ type: 'account:create_role'; role_id: string; by: Grantor; now: string } & RoleDetail)
  | { type: 'account:change_role'; role_id: string; changes: Partial<RoleDetail>; by: Grantor; now: string }
  | { type: 'account:delete_role'; role_id: string; now: string };

/** Of a role that was given no other. */
export const ROLE_COLOR = '#6b7280';
const MAX_ROLES = 100;

/** The four default roles under the given ids, ready for `account:created`. */
export function seededRoles(role_ids: readonly string[]): AccountRole[] {
  if (role_ids.length !== DEFAULT_ROLES.length)
    throw new Error(`an account is seeded with ${DEFAULT_ROLES.length} roles`);
  return DEFAULT_ROLES.map((role, index) =>
    asSeeded({ role_id: role_ids[index]!, ...role, is_default: true, permissions: [...role.permissions] }),
  );
}

/** An Owner's permissions are not listed. */
export function asSeeded(role: AccountRole): AccountRole {
  return role.is_system && role.slug === 'owner' ? { ...role, permissions: null } : role;
}

/** A seeded role from before roles had a description and a colour. */
export function described(role: Omit<AccountRole, 'description' | 'color' | 'is_default'>): AccountRole {
  const seeded = DEFAULT_ROLES.find(({ slug }) => slug === role.slug);
  return { ...role, description: seeded?.description ?? null, color: seeded?.color ?? ROLE_COLOR, is_default: true };
}

/** @throws DomainError `UNKNOWN_PERMISSION`, naming the first that no registry of accounts has */
export function requireKnown(permissions: Iterable<string>): void {
  for (const permission of permissions)
    if (!isAccountPermission(permission)) throw new DomainError('UNKNOWN_PERMISSION', { permission });
}

/** @throws DomainError `PERMISSION_BEYOND_OWN`, naming the first that the giver lacks */
export function requireGrantable(state: Account, giver: Grantor, permissions: Iterable<string>): void {
  if (giver === null) return;
  const held = new Set(giver.permissions);
  const own = giver.user_id === null ? null : permissionsOf(state, giver.user_id);
  for (const permission of permissions) {
    if (!held.has(permission) || own?.has(permission) === false)
      throw new DomainError('PERMISSION_BEYOND_OWN', { permission });
  }
}

const ALL: ReadonlySet<string> = new Set(ACCOUNT_PERMISSIONS);

/** Permissions of the user's role on the account; empty without a membership. */
function permissionsOf(state: Account, user_id: string): ReadonlySet<string> {
  const member = state.members.get(user_id);
  const role = member && state.roles.get(member.role_id);
  if (role === undefined) return new Set();
  return role.permissions === null ? ALL : new Set(role.permissions);
}

/** The role, when it can be given. Ownership is not handed out by giving the Owner role. */
export function requireAssignable(state: Account, role_id: string): Role & { permissions: readonly string[] } {
  const role = requireRole(state, role_id);
  if (role.permissions === null) throw new DomainError('ONE_OWNER', { role_id });
  return { ...role, permissions: role.permissions };
}

function requireRole(state: Account, role_id: string): Role {
  const role = state.roles.get(role_id);
  if (role === undefined) throw new DomainError('ROLE_NOT_FOUND', { role_id });
  return role;
}

export function decideRole(state: Account, account_id: string, command: RoleCommand): AccountEvent[] {
  const { role_id, now } = command;
  switch (command.type) {
    case 'account:create_role': {
      const { name, description, color, permissions, by } = command;
      requireKnown(permissions);
      requireGrantable(state, by, permissions);
      requireFreeName(state, role_id, name);
      if (state.roles.size >= MAX_ROLES) throw new DomainError('TOO_MANY_ROLES');
      const position = Math.max(...[...state.roles.values()].map((role) => role.position)) + 1;
      const slug = freeSlug(name, new Set([...state.roles.values()].map((role) => role.slug)));
      const made = { account_id, role_id, slug, name, description, color, position };
      return [{ type: 'account:role_created', ...made, permissions: inOrder(permissions), created_at: now }];
    }
    case 'account:change_role': {
      const { changes, by } = command;
      if (changes.permissions) requireKnown(changes.permissions);
      const role = requireRole(state, role_id);
      const { permissions } = role;
      if (permissions === null) throw new DomainError('SYSTEM_ROLE', { role_id });
      requireGrantable(
        state,
        by,
        (changes.permissions ?? []).filter((one) => !permissions.includes(one)),
      );
      const { slug: _slug, position: _position, is_system: _system, is_default, ...before } = role;
      const after = { ...before, permissions, ...changes };
      if (after.name !== role.name) {
        if (is_default) throw new DomainError('DEFAULT_ROLE_NAME', { role_id });
        requireFreeName(state, role_id, after.name);
      }
      const wanted = { ...after, permissions: changes.permissions ? inOrder(changes.permissions) : [...permissions] };
      if (JSON.stringify(wanted) === JSON.stringify({ ...before, permissions })) return [];
      return [{ type: 'account:role_changed', account_id, role_id, ...wanted, changed_at: now }];
    }
    case 'account:delete_role': {
      if (requireRole(state, role_id).is_default) throw new DomainError('DEFAULT_ROLE', { role_id });
      if (state.members.some((member) => member.role_id === role_id)) throw new DomainError('ROLE_IN_USE', { role_id });
      const offered = [...state.invites].filter(([, invite]) => invite.role_id === role_id);
      return [
        ...offered.map(([invite_id]): AccountEvent => {
          return { type: 'account:invite_deleted', account_id, invite_id, deleted_at: now };
        }),
        { type: 'account:role_deleted', account_id, role_id, deleted_at: now },
      ];
    }
    default:
      return unreachable(command);
  }
}

/** In the registry's order, each once. */
const inOrder = (permissions: readonly string[]): string[] =>
  ACCOUNT_PERMISSIONS.filter((name) => permissions.includes(name));

function requireFreeName(state: Account, role_id: string, name: string): void {
  const taken = [...state.roles].some(
    ([id, role]) => id !== role_id && comparableName(role.name) === comparableName(name),
  );
  if (taken) throw new DomainError('ROLE_NAME_TAKEN', { name });
}

export function evolveRoles(
  roles: Account['roles'],
  event: Extract<AccountEvent, { role_id: string; type: `account:role_${string}` }>,
): Account['roles'] {
  const next = new Map(roles);
  switch (event.type) {
    case 'account:role_created': {
      const { role_id, slug, name, description, color, position, permissions } = event;
      const role = { slug, name, description, color, position, permissions };
      return next.set(role_id, { ...role, is_system: false, is_default: false });
    }
    case 'account:role_changed': {
      const { role_id, name, description, color, permissions } = event;
      const role = roles.get(role_id);
      return role === undefined ? roles : next.set(role_id, { ...role, name, description, color, permissions });
    }
    case 'account:role_deleted':
      next.delete(event.role_id);
      return next;
    default:
      return unreachable(event);
  }
}
