import { Map as PersistentMap } from 'immutable';
import { z } from 'zod';
import { event, events, instant, type EventOf } from '../kernel/event';
import type { Decider } from '../kernel/decider';
import { DomainError } from '../kernel/errors';
import { isKnownFlag } from './feature-flags';
import { DEFAULT_ROLES } from './permissions';
import { FREE_PLAN_ID, isLimitValue, isPlanLimit } from './plan-limits';
import { unreachable } from './unreachable';

/** A role as an account keeps it: its permissions are listed one by one, but the Owner's, who holds all there is. */
const AccountRole = z.strictObject({
  role_id: z.uuid(),
  slug: z.string(),
  name: z.string(),
  is_system: z.boolean(),
  permissions: z.array(z.string()).nullable().describe('Null: all, with those that come later'),
});
export type AccountRole = z.output<typeof AccountRole>;

const account_id = z.uuid();
const user_id = z.uuid();

/** A tenant: members with roles, feature overrides. Source: spec doc1 §1, §5.9, §5.10. */
export const ACCOUNT_EVENTS = events({
  'account:created': event(
    {
      account_id,
      name: z.string(),
      owner_id: user_id,
      roles: z.array(AccountRole).describe('Owner, Administrator, Moderator, Viewer, in this order'),
      membership_id: z.uuid().describe("The owner's membership"),
      created_at: instant(),
    },
    // The first version listed what an Owner held on the day.
    { version: 2, upcast: [({ roles, ...rest }) => ({ ...rest, roles: (roles as AccountRole[]).map(asSeeded) })] },
  ),
  'account:member_added': event({
    account_id,
    membership_id: z.uuid(),
    user_id,
    role_id: z.uuid(),
    added_at: instant(),
  }),
  'account:member_role_changed': event({ account_id, user_id, role_id: z.uuid(), changed_at: instant() }),
  'account:member_removed': event({ account_id, membership_id: z.uuid(), user_id, removed_at: instant() }),
  'account:owner_replaced': event({
    account_id,
    owner_id: user_id.describe('A member by then; this gives them the Owner role'),
    former_owner_id: user_id,
    former_role_id: z
      .uuid()
      .nullable()
      .describe('What the former owner holds instead; null: their membership ends next'),
    replaced_at: instant(),
  }),
  'account:feature_override_set': event({
    account_id,
    flag: z.string(),
    enabled: z.boolean().nullable().describe('Null takes the override away'),
    set_at: instant(),
  }),
  'account:plan_changed': event({ account_id, plan_id: z.uuid(), from_plan_id: z.uuid(), changed_at: instant() }),
  'account:limit_override_set': event({
    account_id,
    name: z.string().describe('Of a limit that plans have'),
    value: z.int().nullable().describe('Null takes the override away'),
    set_at: instant(),
  }),
});
export type AccountEvent = EventOf<typeof ACCOUNT_EVENTS>;

export type AccountCommand =
  | {
      type: 'account:create';
      account_id: string;
      name: string;
      owner_id: string;
      membership_id: string;
      /** One id for each of the default roles, in their order. */
      role_ids: readonly string[];
      now: string;
    }
  | { type: 'account:add_member'; membership_id: string; user_id: string; role_id: string; now: string }
  | { type: 'account:change_member_role'; user_id: string; role_id: string; now: string }
  | { type: 'account:remove_member'; user_id: string; now: string }
  | {
      type: 'account:replace_owner';
      user_id: string;
      /** Of the new owner, should they be no member yet. */
      membership_id: string;
      /** What the former owner becomes; null ends their membership. */
      former_role_id: string | null;
      now: string;
    }
  | { type: 'account:set_feature_overrides'; overrides: Readonly<Record<string, boolean | null>>; now: string }
  /** Appended with the plans' own counts (access/plans.ts). */
  | { type: 'account:change_plan'; plan_id: string; now: string }
  | { type: 'account:set_limit_overrides'; overrides: Readonly<Record<string, number | null>>; now: string };

export interface Account {
  account_id: string | null;
  owner_id: string | null;
  roles: ReadonlyMap<string, string>;
  /** User to membership and role. */
  members: PersistentMap<string, { membership_id: string; role_id: string }>;
  overrides: ReadonlyMap<string, boolean>;
  plan_id: string;
  limit_overrides: ReadonlyMap<string, number>;
}

const initialAccount: Account = {
  account_id: null,
  owner_id: null,
  roles: new Map(),
  members: PersistentMap(),
  overrides: new Map(),
  plan_id: FREE_PLAN_ID,
  limit_overrides: new Map(),
};
export const accountStream = (account_id: string): string => `account-${account_id}`;

/** The four default roles under the given ids, ready for `account:created`. */
export function seededRoles(role_ids: readonly string[]): AccountRole[] {
  if (role_ids.length !== DEFAULT_ROLES.length)
    throw new Error(`an account is seeded with ${DEFAULT_ROLES.length} roles`);
  return DEFAULT_ROLES.map((role, index) =>
    asSeeded({ role_id: role_ids[index]!, ...role, permissions: [...role.permissions] }),
  );
}

/** An Owner's permissions are not listed. */
function asSeeded(role: AccountRole): AccountRole {
  return role.is_system && role.slug === 'owner' ? { ...role, permissions: null } : role;
}

function decideAccount(state: Account, command: AccountCommand): AccountEvent[] {
  if (command.type === 'account:create') {
    if (state.account_id !== null) throw new DomainError('ACCOUNT_EXISTS', { account_id: state.account_id });
    const { account_id, name, owner_id, membership_id, now } = command;
    const roles = seededRoles(command.role_ids);
    return [{ type: 'account:created', account_id, name, owner_id, roles, membership_id, created_at: now }];
  }
  const { account_id } = state;
  if (account_id === null) throw new DomainError('ACCOUNT_NOT_FOUND');
  switch (command.type) {
    case 'account:add_member': {
      const { membership_id, user_id, role_id, now } = command;
      if (state.members.has(user_id)) throw new DomainError('ALREADY_A_MEMBER', { user_id });
      requireAssignable(state, role_id);
      return [{ type: 'account:member_added', account_id, membership_id, user_id, role_id, added_at: now }];
    }
    case 'account:change_member_role': {
      const { user_id, role_id, now } = command;
      const member = requireMember(state, user_id);
      if (user_id === state.owner_id) throw new DomainError('OWNER_KEEPS_ROLE', { user_id });
      requireAssignable(state, role_id);
      if (member.role_id === role_id) return [];
      return [{ type: 'account:member_role_changed', account_id, user_id, role_id, changed_at: now }];
    }
    case 'account:remove_member': {
      const { user_id, now } = command;
      const { membership_id } = requireMember(state, user_id);
      if (user_id === state.owner_id) throw new DomainError('OWNER_STAYS', { user_id });
      return [{ type: 'account:member_removed', account_id, membership_id, user_id, removed_at: now }];
    }
    case 'account:replace_owner':
      return decideOwner(state, account_id, command);
    case 'account:set_feature_overrides': {
      const { overrides, now } = command;
      const unknown = Object.keys(overrides).find((flag) => !isKnownFlag(flag));
      if (unknown !== undefined) throw new DomainError('UNKNOWN_FLAG', { flag: unknown });
      return Object.entries(overrides)
        .filter(([flag, enabled]) => (state.overrides.get(flag) ?? null) !== enabled)
        .map(([flag, enabled]) => ({ type: 'account:feature_override_set', account_id, flag, enabled, set_at: now }));
    }
    case 'account:change_plan': {
      const { plan_id, now } = command;
      if (plan_id === state.plan_id) return [];
      return [{ type: 'account:plan_changed', account_id, plan_id, from_plan_id: state.plan_id, changed_at: now }];
    }
    case 'account:set_limit_overrides': {
      const { overrides, now } = command;
      for (const [name, value] of Object.entries(overrides)) {
        if (!isPlanLimit(name)) throw new DomainError('UNKNOWN_LIMIT', { name });
        if (value !== null && !isLimitValue(value)) throw new DomainError('NEGATIVE_LIMIT', { name });
      }
      return Object.entries(overrides)
        .filter(([name, value]) => (state.limit_overrides.get(name) ?? null) !== value)
        .map(([name, value]) => ({ type: 'account:limit_override_set', account_id, name, value, set_at: now }));
    }
    default:
      return unreachable(command);
  }
}

/** An operator's: who owns an account gives it to nobody by themselves. */
function decideOwner(
  state: Account,
  account_id: string,
  { user_id, membership_id, former_role_id, now }: Extract<AccountCommand, { type: 'account:replace_owner' }>,
): AccountEvent[] {
  const former_owner_id = state.owner_id!;
  if (user_id === former_owner_id) return [];
  if (former_role_id !== null) requireAssignable(state, former_role_id);
  const events: AccountEvent[] = [];
  if (!state.members.has(user_id)) {
    const role_id = ownerRole(state);
    events.push({ type: 'account:member_added', account_id, membership_id, user_id, role_id, added_at: now });
  }
  const replaced = { account_id, owner_id: user_id, former_owner_id, former_role_id, replaced_at: now };
  events.push({ type: 'account:owner_replaced', ...replaced });
  if (former_role_id === null) {
    const { membership_id } = requireMember(state, former_owner_id);
    const removed = { account_id, membership_id, user_id: former_owner_id, removed_at: now };
    events.push({ type: 'account:member_removed', ...removed });
  }
  return events;
}

const ownerRole = ({ roles }: Account): string => [...roles].find(([, slug]) => slug === 'owner')![0];

function evolveAccount(state: Account, event: AccountEvent): Account {
  switch (event.type) {
    case 'account:created': {
      const { account_id, owner_id, membership_id, roles } = event;
      const role_id = roles[0]!.role_id;
      return {
        ...state,
        account_id,
        owner_id,
        roles: new Map(roles.map((role) => [role.role_id, role.slug])),
        members: PersistentMap([[owner_id, { membership_id, role_id }]]),
      };
    }
    case 'account:member_added': {
      const { user_id, membership_id, role_id } = event;
      return { ...state, members: state.members.set(user_id, { membership_id, role_id }) };
    }
    case 'account:member_role_changed': {
      const member = state.members.get(event.user_id);
      if (member === undefined) return state;
      return { ...state, members: state.members.set(event.user_id, { ...member, role_id: event.role_id }) };
    }
    case 'account:member_removed':
      return { ...state, members: state.members.delete(event.user_id) };
    case 'account:owner_replaced': {
      const { owner_id, former_owner_id, former_role_id } = event;
      const withRole = (members: Account['members'], user_id: string, role_id: string) => {
        const member = members.get(user_id);
        return member === undefined ? members : members.set(user_id, { ...member, role_id });
      };
      const members = withRole(state.members, owner_id, ownerRole(state));
      const then = former_role_id === null ? members : withRole(members, former_owner_id, former_role_id);
      return { ...state, owner_id, members: then };
    }
    case 'account:feature_override_set': {
      const overrides = new Map(state.overrides);
      if (event.enabled === null) overrides.delete(event.flag);
      else overrides.set(event.flag, event.enabled);
      return { ...state, overrides };
    }
    case 'account:plan_changed':
      return { ...state, plan_id: event.plan_id };
    case 'account:limit_override_set': {
      const limit_overrides = new Map(state.limit_overrides);
      if (event.value === null) limit_overrides.delete(event.name);
      else limit_overrides.set(event.name, event.value);
      return { ...state, limit_overrides };
    }
    default:
      return unreachable(event);
  }
}

function requireMember(state: Account, user_id: string) {
  const member = state.members.get(user_id);
  if (member === undefined) throw new DomainError('MEMBER_NOT_FOUND', { user_id });
  return member;
}

/** Ownership is not handed out by giving the Owner role. */
function requireAssignable(state: Account, role_id: string): void {
  const slug = state.roles.get(role_id);
  if (slug === undefined) throw new DomainError('ROLE_NOT_FOUND', { role_id });
  if (slug === 'owner') throw new DomainError('ONE_OWNER', { role_id });
}

export const account: Decider<Account, AccountCommand, AccountEvent> = {
  initial: initialAccount,
  decide: decideAccount,
  evolve: evolveAccount,
};
