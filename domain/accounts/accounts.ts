import { Map as PersistentMap } from 'immutable';
import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { decideInvite, evolveInvites, inviteEvents, type Invite, type InviteCommand } from './invites';
import { decideLogin, evolveLogins, loginEvents, type LoginCommand } from './login-assignments';
import { decideMember, evolveMembers, memberEvents, type MemberCommand } from './members';
import {
  AccountRole,
  asSeeded,
  decideRole,
  described,
  evolveRoles,
  roleEvents,
  seededRoles,
  type Role,
  type RoleCommand,
} from './roles';
import { isKnownFlag } from '../operators/feature-flags';
import { FREE_PLAN_ID, isLimitValue, isPlanLimit } from '../billing/plan-limits';
import { unreachable } from '../common/unreachable';

const account_id = z.uuid();
const user_id = z.uuid();

/** A tenant: members with roles, invites, feature overrides. Source: spec doc1 §1, §5.9, §5.10, extra-facts §3–5. */
export const ACCOUNT_EVENTS = events({
  'account:created': event(
    {
      account_id,
      name: z.string().nullable().describe("Null: the owner's display name, which no event holds"),
      description: z.string().nullable(),
      plan: z.string().describe('Slug of the plan that was asked for; which one it is on say the events of plans'),
      owner_id: user_id,
      roles: z.array(AccountRole).describe('Owner, Administrator, Moderator, Viewer, in this order'),
      membership_id: z.uuid().describe("The owner's membership"),
      created_at: instant(),
    },
    {
      version: 3,
      upcast: [
        // The first version listed what an Owner held on the day.
        ({ roles, ...rest }) => ({ ...rest, roles: (roles as AccountRole[]).map(asSeeded) }),
        // The second knew neither what an account is about, nor what roles look like.
        ({ roles, ...rest }) => {
          return { ...rest, description: null, plan: 'free', roles: (roles as AccountRole[]).map(described) };
        },
      ],
    },
  ),
  'account:details_changed': event({
    account_id,
    name: z.string().nullable(),
    description: z.string().nullable(),
    changed_at: instant(),
  }),
  'account:dissolved': event({ account_id, owner_id: user_id, dissolved_at: instant() }),
  ...memberEvents,
  'account:feature_override_set': event(
    {
      account_id,
      flag: z.string(),
      enabled: z.boolean().nullable().describe('Null takes the override away'),
      set_at: instant(),
    },
    { audit: { by: ['flag'] } },
  ),
  'account:plan_changed': event(
    { account_id, plan_id: z.uuid(), from_plan_id: z.uuid(), changed_at: instant() },
    { audit: { by: [] } },
  ),
  'account:limit_override_set': event(
    {
      account_id,
      name: z.string().describe('Of a limit that plans have'),
      value: z.int().nullable().describe('Null takes the override away'),
      set_at: instant(),
    },
    { audit: { by: ['name'] } },
  ),
  ...roleEvents,
  ...inviteEvents,
  ...loginEvents,
});
export type AccountEvent = EventOf<typeof ACCOUNT_EVENTS>;

export type AccountCommand =
  | {
      type: 'account:create';
      account_id: string;
      name: string | null;
      description?: string | null;
      plan?: string;
      owner_id: string;
      membership_id: string;
      /** Ids of the default roles, in their order. */
      role_ids: readonly string[];
      now: string;
    }
  | { type: 'account:change_details'; name?: string | null; description?: string | null; now: string }
  /** Its owner's alone. Appended with its plan's count, as a change of plan is. */
  | { type: 'account:dissolve'; user_id: string | null; now: string }
  | { type: 'account:set_feature_overrides'; overrides: Readonly<Record<string, boolean | null>>; now: string }
  /** Appended with the plans' own counts (services/billing/plan-changes.ts). */
  | { type: 'account:change_plan'; plan_id: string; now: string }
  | { type: 'account:set_limit_overrides'; overrides: Readonly<Record<string, number | null>>; now: string }
  | MemberCommand
  | RoleCommand
  | InviteCommand
  | LoginCommand;

export interface Account {
  account_id: string | null;
  /** Dissolved ones are gone for good. */
  dissolved: boolean;
  name: string | null;
  description: string | null;
  owner_id: string | null;
  roles: ReadonlyMap<string, Role>;
  /** User to membership and role. */
  members: PersistentMap<string, { membership_id: string; role_id: string }>;
  overrides: ReadonlyMap<string, boolean>;
  plan_id: string;
  limit_overrides: ReadonlyMap<string, number>;
  /** Oldest first. */
  invites: ReadonlyMap<string, Invite>;
  /** User to what they act with, by provider. */
  logins: PersistentMap<string, Readonly<Record<string, string>>>;
  primary_login: string | null;
}

const initialAccount: Account = {
  account_id: null,
  dissolved: false,
  name: null,
  description: null,
  owner_id: null,
  roles: new Map(),
  members: PersistentMap(),
  overrides: new Map(),
  plan_id: FREE_PLAN_ID,
  limit_overrides: new Map(),
  invites: new Map(),
  logins: PersistentMap(),
  primary_login: null,
};
export const accountStream = (account_id: string): string => `account-${account_id}`;

function decideAccount(state: Account, command: AccountCommand): AccountEvent[] {
  if (command.type === 'account:create') {
    if (state.account_id !== null) throw new DomainError('ACCOUNT_EXISTS', { account_id: state.account_id });
    const { type: _type, role_ids, now, description = null, plan = 'free', ...made } = command;
    const roles = seededRoles(role_ids);
    return [{ type: 'account:created', ...made, description, plan, roles, created_at: now }];
  }
  const { account_id } = state;
  if (account_id === null || state.dissolved) throw new DomainError('ACCOUNT_NOT_FOUND');
  switch (command.type) {
    case 'account:change_details': {
      const { name = state.name, description = state.description, now } = command;
      if (name === state.name && description === state.description) return [];
      return [{ type: 'account:details_changed', account_id, name, description, changed_at: now }];
    }
    case 'account:dissolve': {
      const { user_id, now } = command;
      const { owner_id, plan_id: from_plan_id } = state;
      // An operator names nobody: it ends whoever owns it.
      if (user_id !== null && user_id !== owner_id) throw new DomainError('NOT_THE_OWNER', { user_id });
      const dissolved = { type: 'account:dissolved', account_id, owner_id: owner_id!, dissolved_at: now } as const;
      if (from_plan_id === FREE_PLAN_ID) return [dissolved];
      // Its plan counts it no more.
      const left = { account_id, plan_id: FREE_PLAN_ID, from_plan_id, changed_at: now };
      return [{ type: 'account:plan_changed', ...left }, dissolved];
    }
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
    case 'account:add_member':
    case 'account:change_member_role':
    case 'account:remove_member':
    case 'account:replace_owner':
      return decideMember(state, account_id, command);
    case 'account:create_role':
    case 'account:change_role':
    case 'account:delete_role':
      return decideRole(state, account_id, command);
    case 'account:create_invite':
    case 'account:accept_invite':
    case 'account:delete_invite':
    case 'account:delete_invites_of_key':
      return decideInvite(state, account_id, command);
    case 'account:assign_login':
    case 'account:unassign_login':
    case 'account:set_primary_login':
    case 'account:forget_login':
      return decideLogin(state, account_id, command);
    default:
      return unreachable(command);
  }
}

function evolveAccount(state: Account, event: AccountEvent): Account {
  switch (event.type) {
    case 'account:created': {
      const { account_id, name, description, owner_id, membership_id, roles } = event;
      const role_id = roles[0]!.role_id;
      return {
        ...state,
        account_id,
        name,
        description,
        owner_id,
        roles: new Map(roles.map(({ role_id, ...role }, index) => [role_id, { ...role, position: index + 1 }])),
        members: PersistentMap([[owner_id, { membership_id, role_id }]]),
      };
    }
    case 'account:details_changed':
      return { ...state, name: event.name, description: event.description };
    case 'account:dissolved':
      return { ...initialAccount, account_id: event.account_id, dissolved: true };
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
    case 'account:member_added':
    case 'account:member_role_changed':
    case 'account:member_removed':
    case 'account:owner_replaced':
      return evolveMembers(state, event);
    case 'account:role_created':
    case 'account:role_changed':
    case 'account:role_deleted':
      return { ...state, roles: evolveRoles(state.roles, event) };
    case 'account:invite_created':
    case 'account:invite_accepted':
    case 'account:invite_deleted':
      return { ...state, invites: evolveInvites(state, event) };
    case 'account:login_assigned':
    case 'account:login_unassigned':
      return { ...state, logins: evolveLogins(state.logins, event) };
    case 'account:primary_login_set':
      return { ...state, primary_login: event.login_connection_id };
    default:
      return unreachable(event);
  }
}

export const account: Decider<Account, AccountCommand, AccountEvent> = {
  initial: initialAccount,
  decide: decideAccount,
  evolve: evolveAccount,
};
