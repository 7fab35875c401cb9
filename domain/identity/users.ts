import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { unreachable } from '../common/unreachable';
import {
  decideUserLogin,
  evolveUserLogins,
  userLoginEvents,
  type Login,
  type UserLoginCommand,
  type UserLogins,
} from './login-connections';

const user_id = z.uuid();

/**
 * A person with one identity, who may belong to several accounts. These events carry ids alone: names and pictures
 * change by the vendor's will and must be erasable, so they live in the table `profiles`
 * (services/identity/profiles.ts). The first version of `user:registered` carried both: no reader sees them any more.
 * Source: spec doc1 §1, doc2 §2.3.
 */
export const USER_EVENTS = events({
  'user:registered': event(
    { user_id, registered_at: instant() },
    { version: 2, upcast: [({ display_name: _name, avatar_url: _picture, ...rest }) => rest] },
  ),
  ...userLoginEvents,
  /** `role`: the slug of a system role, the id of any other (domain/operators/admin-roles.ts). */
  'user:admin_role_assigned': event({ user_id, role: z.string(), assigned_at: instant() }, { audit: { by: ['role'] } }),
  'user:admin_role_removed': event({ user_id, role: z.string(), removed_at: instant() }, { audit: { by: ['role'] } }),
  'user:deleted': event({ user_id, deleted_at: instant() }),
});
export type UserEvent = EventOf<typeof USER_EVENTS>;

export type UserCommand =
  | { type: 'user:register'; user_id: string; login?: Login; now: string }
  | UserLoginCommand
  | { type: 'user:assign_admin_role'; role: string; now: string }
  | { type: 'user:remove_admin_role'; role: string; now: string }
  /** Of who owns no account (services/identity/deletion.ts). */
  | { type: 'user:delete'; now: string };

export interface User {
  user_id: string | null;
  /** For good: the id is never anybody's again. */
  deleted: boolean;
  admin_roles: ReadonlySet<string>;
  /** Everything that logs in as this user, by its id. */
  logins: UserLogins;
}

const initialUser: User = { user_id: null, deleted: false, admin_roles: new Set(), logins: new Map() };
export const userStream = (user_id: string): string => `user-${user_id}`;

function decideUser(state: User, command: UserCommand): UserEvent[] {
  if (command.type === 'user:register') {
    if (state.user_id !== null) throw new DomainError('USER_EXISTS', { user_id: state.user_id });
    const { user_id, login, now } = command;
    const registered = { type: 'user:registered', user_id, registered_at: now } as const;
    return login
      ? [registered, { type: 'user:login_connected', user_id, ...login, linked_with: null, connected_at: now }]
      : [registered];
  }
  const { user_id } = state;
  if (user_id === null || state.deleted) throw new DomainError('USER_NOT_FOUND');
  switch (command.type) {
    case 'user:connect_login':
    case 'user:disconnect_login':
    case 'user:require_login_reconnect':
    case 'user:clear_login_reconnect':
      return decideUserLogin(state, user_id, command);
    case 'user:assign_admin_role':
      if (state.admin_roles.has(command.role)) return [];
      return [{ type: 'user:admin_role_assigned', user_id, role: command.role, assigned_at: command.now }];
    case 'user:remove_admin_role':
      if (!state.admin_roles.has(command.role)) return [];
      return [{ type: 'user:admin_role_removed', user_id, role: command.role, removed_at: command.now }];
    case 'user:delete':
      return deletion(state, user_id, command.now);
    default:
      return unreachable(command);
  }
}

/** Roles and logins are taken away by events of their own, so that what follows from such events follows here too. */
const deletion = (state: User, user_id: string, now: string): UserEvent[] => [
  ...[...state.admin_roles].map((role): UserEvent => {
    return { type: 'user:admin_role_removed', user_id, role, removed_at: now };
  }),
  ...[...state.logins.values()].map(({ login_connection_id, provider, identity }): UserEvent => {
    const login = { user_id, login_connection_id, provider, identity, removed_with: null, session_id: null };
    return { type: 'user:login_disconnected', ...login, disconnected_at: now };
  }),
  { type: 'user:deleted', user_id, deleted_at: now },
];

function evolveUser(state: User, event: UserEvent): User {
  switch (event.type) {
    case 'user:registered':
      return { ...state, user_id: event.user_id };
    case 'user:login_connected':
    case 'user:login_disconnected':
    case 'user:login_reconnect_required':
    case 'user:login_reconnect_cleared':
      return { ...state, logins: evolveUserLogins(state.logins, event) };
    case 'user:admin_role_assigned':
      return { ...state, admin_roles: new Set([...state.admin_roles, event.role]) };
    case 'user:admin_role_removed':
      return { ...state, admin_roles: new Set([...state.admin_roles].filter((role) => role !== event.role)) };
    case 'user:deleted':
      return { ...state, deleted: true };
    default:
      return unreachable(event);
  }
}

export const user: Decider<User, UserCommand, UserEvent> = {
  initial: initialUser,
  decide: decideUser,
  evolve: evolveUser,
};
