import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { ADMIN_PERMISSIONS, isAdminPermission } from '../common/permissions';
import { release, rename, reserve, type ReservationCommand } from '../common/reservations';
import { describesSame, permissionsAfter } from './role-permissions';
import { unreachable } from '../common/unreachable';

const role_id = z.uuid();
/** Members of a role that answers and events carry. */
const described = {
  name: z.string(),
  description: z.string().nullable(),
  permissions: z.array(z.string()).nullable().describe('Sorted; null: all there are, with those that come later'),
};
const audit = { target: ['admin_role', 'role_id'] } as const;

/** Permissions of the service's operators, by role. Source: spec doc1 §5.11, doc2 §2.7. */
export const ADMIN_ROLE_EVENTS = events({
  'admin_role:created': event(
    {
      role_id,
      key: z.string().describe("What a user's events call it: the slug of a system role, the id of any other"),
      is_system: z.boolean(),
      ...described,
      created_at: instant(),
    },
    { audit },
  ),
  'admin_role:updated': event(
    { role_id, ...described, name_before: z.string(), updated_at: instant() },
    { audit: { ...audit, omit: ['name_before'] } },
  ),
  'admin_role:deleted': event({ role_id, key: z.string(), name: z.string(), deleted_at: instant() }, { audit }),
  /** Repeats the event of the user's stream, so that two removals of the last two holders conflict in one stream. */
  'admin_role:holder_left': event({ role_id, user_id: z.uuid(), left_at: instant() }, { audit: null }),
});
export type AdminRoleEvent = EventOf<typeof ADMIN_ROLE_EVENTS>;

export type AdminRoleCommand =
  | {
      type: 'admin_role:create';
      role_id: string;
      name: string;
      description: string | null;
      permissions: readonly string[];
      now: string;
    }
  | { type: 'admin_role:seed'; now: string }
  | {
      type: 'admin_role:update';
      name?: string | undefined;
      /** Null clears it. */
      description?: string | null | undefined;
      permissions?: readonly string[] | undefined;
      now: string;
    }
  | { type: 'admin_role:delete'; now: string }
  | { type: 'admin_role:note_leaver'; user_id: string; now: string };

interface Described {
  name: string;
  description: string | null;
  /** Null: all there are. */
  permissions: readonly string[] | null;
}

export interface AdminRole extends Described {
  status: 'none' | 'there' | 'deleted';
  role_id: string;
  key: string;
  is_system: boolean;
  created_at: string;
  updated_at: string;
}

const ENTRY = 'admin:access';

/** The role that exists without anyone having made it: it holds all there is. Its key is what users' events say. */
export const SUPER_ADMIN = {
  role_id: '5a000000-0000-4000-8000-000000000001',
  key: 'super-admin',
  is_system: true,
  name: 'Super Admin',
  description: 'Everything that an operator of the service may do',
  permissions: null,
} as const;

/** Kind of the reservation that makes a name one role's. */
const ADMIN_ROLE_NAME = 'admin_role_name';
const nameKey = (name: string): string => name.normalize('NFC').toLowerCase();

export const adminRoleStream = (role_id: string): string => `admin-role-${role_id}`;

const initial: AdminRole = {
  status: 'none',
  role_id: '',
  key: '',
  is_system: false,
  name: '',
  description: null,
  permissions: [],
  created_at: '',
  updated_at: '',
};

function decide(state: AdminRole, command: AdminRoleCommand): AdminRoleEvent[] {
  const { now } = command;
  if (command.type === 'admin_role:seed') {
    return state.status === 'none' ? [{ type: 'admin_role:created', ...SUPER_ADMIN, created_at: now }] : [];
  }
  if (command.type === 'admin_role:create') {
    if (state.status !== 'none') throw new DomainError('ROLE_EXISTS', { role_id: state.role_id });
    const { role_id, name, description } = command;
    const permissions = permissionsAfter([], [ENTRY, ...command.permissions], isAdminPermission);
    const role = { role_id, key: role_id, is_system: false, name, description, permissions };
    return [{ type: 'admin_role:created', ...role, created_at: now }];
  }
  if (state.status !== 'there') throw new DomainError('ADMIN_ROLE_NOT_FOUND');
  const { role_id, key, name } = state;
  switch (command.type) {
    case 'admin_role:update': {
      const after = {
        name: command.name ?? name,
        description: command.description === undefined ? state.description : command.description,
        permissions: command.permissions === undefined ? listed(state) : changed(state, command.permissions),
      };
      if (describesSame(state, after)) return [];
      return [{ type: 'admin_role:updated', role_id, ...after, name_before: name, updated_at: now }];
    }
    case 'admin_role:delete':
      if (state.is_system) throw new DomainError('SYSTEM_ADMIN_ROLE', { role_id });
      return [{ type: 'admin_role:deleted', role_id, key, name, deleted_at: now }];
    case 'admin_role:note_leaver':
      return [{ type: 'admin_role:holder_left', role_id, user_id: command.user_id, left_at: now }];
    default:
      return unreachable(command);
  }
}

/**
 * Permissions of a role after a request for `wanted`. The role that holds everything keeps everything: nobody could
 * restore a permission taken from it.
 */
function changed(role: AdminRole, wanted: readonly string[]): string[] | null {
  const permissions = permissionsAfter(role.permissions ?? [], [ENTRY, ...wanted], isAdminPermission);
  if (role.permissions !== null) return permissions;
  const lost = ADMIN_PERMISSIONS.find((name) => !wanted.includes(name));
  if (lost !== undefined) throw new DomainError('SUPER_ADMIN_HOLDS_ALL', { permission: lost });
  return null;
}

function evolve(state: AdminRole, event: AdminRoleEvent): AdminRole {
  switch (event.type) {
    case 'admin_role:created': {
      const { type: _type, ...role } = event;
      return { status: 'there', ...role, updated_at: role.created_at };
    }
    case 'admin_role:updated': {
      const { name, description, permissions, updated_at } = event;
      return { ...state, name, description, permissions, updated_at };
    }
    case 'admin_role:deleted':
      return { ...state, status: 'deleted' };
    case 'admin_role:holder_left':
      return state;
    default:
      return unreachable(event);
  }
}

const listed = ({ permissions }: AdminRole) => permissions && [...permissions];

/** Reservations of these events: a name belongs to one role, regardless of case and spelling. */
export const adminRoleReservations = (events: readonly AdminRoleEvent[]): ReservationCommand[] =>
  events.flatMap((event) => {
    switch (event.type) {
      case 'admin_role:created':
        return [reserve(ADMIN_ROLE_NAME, nameKey(event.name), event.role_id)];
      case 'admin_role:updated':
        return [rename(ADMIN_ROLE_NAME, event.role_id, nameKey(event.name_before), nameKey(event.name))];
      case 'admin_role:deleted':
        return [release(ADMIN_ROLE_NAME, nameKey(event.name), event.role_id)];
      default:
        return [];
    }
  });

export const adminRole: Decider<AdminRole, AdminRoleCommand, AdminRoleEvent> = { initial, decide, evolve };
