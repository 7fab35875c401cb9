import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { isUserRolePermission, USER_PERMISSIONS, USER_ROLE_PERMISSIONS } from '../common/permissions';
import { release, reserve, type ReservationCommand } from '../common/reservations';
import { describesSame, permissionsAfter } from './role-permissions';
import { unreachable } from '../common/unreachable';

const role_id = z.uuid();
const described = {
  name: z.string(),
  description: z.string().nullable(),
  permissions: z.array(z.string()).describe('Sorted'),
};
const audit = { target: ['user_role', 'role_id'] } as const;

/** Permissions of users regardless of account, by role. Source: spec doc1 §5.12, extra-facts §5. */
export const USER_ROLE_EVENTS = events({
  'user_role:created': event(
    {
      role_id,
      slug: z.string(),
      ...described,
      is_system: z.boolean(),
      is_default: z.boolean().describe('Of everybody who was given no other'),
      created_at: instant(),
    },
    { audit },
  ),
  'user_role:updated': event({ role_id, ...described, updated_at: instant() }, { audit }),
  'user_role:deleted': event({ role_id, slug: z.string(), deleted_at: instant() }, { audit }),
  'user_role:given': event(
    { user_id: z.uuid(), role_id: role_id.nullable().describe('Null: the default role'), given_at: instant() },
    { audit: { target: ['user', 'user_id'], by: [] } },
  ),
});
export type UserRoleEvent = Exclude<EventOf<typeof USER_ROLE_EVENTS>, { type: 'user_role:given' }>;
export type UserRoleGiven = Extract<EventOf<typeof USER_ROLE_EVENTS>, { type: 'user_role:given' }>;

interface Described {
  name: string;
  description: string | null;
  permissions: readonly string[];
}

/** A role that exists without anyone having made it. */
export interface SystemUserRole extends Described {
  role_id: string;
  slug: string;
  is_default: boolean;
}

const sorted = (names: readonly string[]) => [...names].sort();
/** Source: spec doc1 §5.12. */
export const SYSTEM_USER_ROLES: readonly SystemUserRole[] = [
  {
    role_id: '5b000000-0000-4000-8000-000000000001',
    slug: 'member',
    name: 'Member',
    description: 'What everybody may do who was given no other role',
    permissions: sorted(USER_PERMISSIONS),
    is_default: true,
  },
  {
    role_id: '5b000000-0000-4000-8000-000000000002',
    slug: 'restricted',
    name: 'Restricted',
    description: 'Reads, and says nothing',
    permissions: ['ideas:comment_read', 'ideas:read'],
    is_default: false,
  },
  {
    role_id: '5b000000-0000-4000-8000-000000000003',
    slug: 'moderator',
    name: 'Moderator',
    description: 'Keeps order on the ideas board',
    permissions: sorted(USER_ROLE_PERMISSIONS),
    is_default: false,
  },
];

export type UserRoleCommand =
  | ({ type: 'user_role:create'; role_id: string; slug: string; now: string } & Described)
  | ({ type: 'user_role:seed'; now: string } & SystemUserRole)
  | {
      type: 'user_role:update';
      name?: string | undefined;
      /** Null clears it. */
      description?: string | null | undefined;
      permissions?: readonly string[] | undefined;
      now: string;
    }
  | { type: 'user_role:delete'; now: string };

export interface UserRole extends Described {
  status: 'none' | 'there' | 'deleted';
  role_id: string;
  slug: string;
  is_system: boolean;
  is_default: boolean;
  created_at: string;
  updated_at: string;
}

/** Kind of the reservation that makes a slug one role's. */
export const USER_ROLE_SLUG = 'user_role_slug';

export const userRoleStream = (role_id: string): string => `user-role-${role_id}`;
export const userRoleHolderStream = (user_id: string): string => `user-role-holder-${user_id}`;

const initial: UserRole = {
  status: 'none',
  role_id: '',
  slug: '',
  name: '',
  description: null,
  permissions: [],
  is_system: false,
  is_default: false,
  created_at: '',
  updated_at: '',
};

function decide(state: UserRole, command: UserRoleCommand): UserRoleEvent[] {
  const { now } = command;
  if (command.type === 'user_role:seed') {
    if (state.status !== 'none') return [];
    const { type: _type, now: _now, permissions, ...role } = command;
    const seeded = { ...role, permissions: [...permissions], is_system: true };
    return [{ type: 'user_role:created', ...seeded, created_at: now }];
  }
  if (command.type === 'user_role:create') {
    if (state.status !== 'none') throw new DomainError('ROLE_EXISTS', { role_id: state.role_id });
    const { role_id, slug, name, description } = command;
    const permissions = permissionsAfter([], command.permissions, isUserRolePermission);
    const role = { role_id, slug, name, description, permissions, is_system: false, is_default: false };
    return [{ type: 'user_role:created', ...role, created_at: now }];
  }
  if (state.status !== 'there') throw new DomainError('USER_ROLE_NOT_FOUND');
  const { role_id, slug } = state;
  switch (command.type) {
    case 'user_role:update': {
      const after = {
        name: command.name ?? state.name,
        description: command.description === undefined ? state.description : command.description,
        permissions: permissionsAfter(
          state.permissions,
          command.permissions ?? state.permissions,
          isUserRolePermission,
        ),
      };
      if (describesSame(state, after)) return [];
      return [{ type: 'user_role:updated', role_id, ...after, updated_at: now }];
    }
    case 'user_role:delete':
      if (state.is_system) throw new DomainError('SYSTEM_USER_ROLE', { role_id });
      return [{ type: 'user_role:deleted', role_id, slug, deleted_at: now }];
    default:
      return unreachable(command);
  }
}

function evolve(state: UserRole, event: UserRoleEvent): UserRole {
  switch (event.type) {
    case 'user_role:created': {
      const { type: _type, ...role } = event;
      return { status: 'there', ...role, updated_at: role.created_at };
    }
    case 'user_role:updated': {
      const { name, description, permissions, updated_at } = event;
      return { ...state, name, description, permissions, updated_at };
    }
    case 'user_role:deleted':
      return { ...state, status: 'deleted' };
    default:
      return unreachable(event);
  }
}

export const userRole: Decider<UserRole, UserRoleCommand, UserRoleEvent> = { initial, decide, evolve };

/** Reservations of these events: a slug belongs to one role as long as the role exists. */
export const userRoleReservations = (events: readonly UserRoleEvent[]): ReservationCommand[] =>
  events.flatMap((event) => {
    if (event.type === 'user_role:created') return [reserve(USER_ROLE_SLUG, event.slug, event.role_id)];
    return event.type === 'user_role:deleted' ? [release(USER_ROLE_SLUG, event.slug, event.role_id)] : [];
  });

export interface GiveUserRole {
  type: 'user_role:give' | 'user_role:take';
  user_id: string;
  /** Taken from who holds another one, it changes nothing. */
  role_id: string;
  now: string;
}

/** The one role of a user; null while it is the default one. */
export const userRoleHolder: Decider<string | null, GiveUserRole, UserRoleGiven> = {
  initial: null,
  decide(held, { type, user_id, role_id, now }) {
    if ((held === role_id) === (type === 'user_role:give')) return [];
    const next = type === 'user_role:give' ? role_id : null;
    return [{ type: 'user_role:given', user_id, role_id: next, given_at: now }];
  },
  evolve: (_held, { role_id }) => role_id,
};
