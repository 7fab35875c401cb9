import { z } from 'zod';
import { AccountCreationOverride, AdminUser, AdminUserDetail, adminUserOf } from '../../views/operators/admin-users';
import type { Caller } from '../../access/authentication/caller';
import { userDeletionWrites } from '../../services/identity/deletion';
import {
  adminPermission,
  command,
  conflict,
  del,
  forbidden,
  notFound,
  patch,
  put,
  type Refuse,
} from '../../app/operation';
import { changeProfile, profileInput } from '../../services/identity/profiles';
import { endRemovedLogins, endsOfLogin } from '../../services/identity/session-revocation';
import { firstMissingAdminPermission } from '../../access/authorization/role-grants';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { adminRole, adminRoleStream, SUPER_ADMIN } from '../../domain/operators/admin-roles';
import { ADMIN_PERMISSIONS, isAdminPermission } from '../../domain/common/permissions';
import { loginReservations } from '../../domain/identity/login-connections';
import { userOverrides, userOverrideStream } from '../../domain/identity/user-overrides';
import { user, userStream, type User, type UserEvent } from '../../domain/identity/users';

const USER_NOT_FOUND = { USER_NOT_FOUND: notFound('User not found') };
const MAX_ACCOUNTS = 2 ** 31 - 1;

/** @throws DomainError `USER_NOT_FOUND` for an unknown or deleted user */
async function requireUser(
  { events }: Services,
  user_id: string,
  refuse: Refuse<typeof USER_NOT_FOUND>,
): Promise<User> {
  const found = await load(events, user, userStream(user_id));
  if (found === null || found.state.deleted) throw refuse('USER_NOT_FOUND');
  return found.state;
}

const BEYOND_OWN = { PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}') };

/** Refuses to remove admin roles, logins or an address of a user whose roles grant more than the caller holds. */
async function requireWithin(
  { events }: Services,
  caller: Caller,
  admin_roles: ReadonlySet<string>,
  refuse: Refuse<typeof BEYOND_OWN>,
): Promise<void> {
  for (const key of admin_roles) {
    const role = key === SUPER_ADMIN.key ? null : await load(events, adminRole, adminRoleStream(key));
    const granted = role === null ? ADMIN_PERMISSIONS : (role.state.permissions ?? []).filter(isAdminPermission);
    const permission = firstMissingAdminPermission(caller, role?.state.status === 'deleted' ? [] : granted);
    if (permission !== undefined) throw refuse('PERMISSION_BEYOND_OWN', { permission });
  }
}

/** Source: spec doc2 §4.2, extra-facts §27. */
export const adminUpdateUser = command({
  name: 'adminUpdateUser',
  summary: "Changes a user's name, address or overrides; what is left out stays as it is",
  rest: patch('/v1/admin/users/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [adminPermission('users:edit')],
  input: z
    .object({
      id: z.uuid(),
      ...profileInput,
      account_creation_override: AccountCreationOverride.optional(),
      max_accounts_override: z
        .int()
        .min(0, 'Limit cannot be negative')
        .max(MAX_ACCOUNTS)
        .nullish()
        .describe('Null: as the plan says'),
    })
    .refine(
      ({ id: _id, ...changes }) => Object.values(changes).some((value) => value !== undefined),
      'At least one field must be given',
    )
    .meta({ id: 'AdminUpdateUserInput' }),
  output: AdminUserDetail,
  errors: { ...USER_NOT_FOUND, ...BEYOND_OWN },
  async run({ input, caller, act, refuse }, services) {
    const { id: user_id, account_creation_override, max_accounts_override, ...profile } = input;
    const { admin_roles } = await requireUser(services, user_id, refuse);
    const renamed = profile.display_name !== undefined || profile.email !== undefined;
    if (renamed) await requireWithin(services, caller, admin_roles, refuse);
    await changeProfile(act, services.db, user_id, profile);
    const stream = userOverrideStream(user_id);
    if (account_creation_override !== undefined) {
      const set = { type: 'user_override:set_account_creation', user_id, override: account_creation_override } as const;
      await act(userOverrides, stream, set, { step: 'account creation' });
    }
    if (max_accounts_override !== undefined) {
      const set = { type: 'user_override:set_max_accounts', user_id, max_accounts: max_accounts_override } as const;
      await act(userOverrides, stream, set, { step: 'max accounts' });
    }
    const found = await adminUserOf(services.db, user_id);
    if (found === null) throw refuse('USER_NOT_FOUND');
    return found;
  },
});

export const adminUpdateUserAccountCreationOverride = command({
  name: 'adminUpdateUserAccountCreationOverride',
  // Source: spec doc2 §4.3.
  summary: 'Lets a user make accounts whatever the global switch says, or forbids it',
  rest: null,
  guard: [adminPermission('users:edit')],
  input: z.object({ user_id: z.uuid(), override: AccountCreationOverride }),
  output: AdminUser,
  errors: USER_NOT_FOUND,
  async run({ input: { user_id, override }, act, refuse }, services) {
    await requireUser(services, user_id, refuse);
    const set = { type: 'user_override:set_account_creation', user_id, override } as const;
    await act(userOverrides, userOverrideStream(user_id), set);
    const found = await adminUserOf(services.db, user_id);
    if (found === null) throw refuse('USER_NOT_FOUND');
    return found;
  },
});

/**
 * Deletes a user. A reactor ends memberships, keys, sessions and readable data (reactors/identity/users.ts). Source:
 * extra-facts §27.
 */
export const adminDeleteUser = command({
  name: 'adminDeleteUser',
  summary: 'Deletes a user who owns no account, with all that is readable of them',
  rest: del('/v1/admin/users/{id}'),
  guard: [adminPermission('users:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.boolean(),
  errors: {
    ...USER_NOT_FOUND,
    ...BEYOND_OWN,
    OWNS_ACCOUNTS: conflict('The user owns an account: dissolve it, or give it another owner, first'),
    LAST_SUPER_ADMIN: conflict('The last super admin cannot be taken away'),
  },
  async run({ input: { id: user_id }, caller, context, act, refuse }, services) {
    // The roles that this deletion removes: a list read before it may lack one assigned a moment ago.
    const additionalWrites = async (decided: readonly UserEvent[]) => {
      const taken = decided.flatMap((event) => (event.type === 'user:admin_role_removed' ? [event.role] : []));
      const admin_roles = new Set(taken);
      await requireWithin(services, caller, admin_roles, refuse);
      return userDeletionWrites(services, context, user_id, { admin_roles });
    };
    await act(
      user,
      userStream(user_id),
      { type: 'user:delete' },
      { reservations: loginReservations, additionalWrites },
    );
    await services.access.announce({ user_id });
    return true;
  },
});

const LOGIN_NOT_FOUND = { LOGIN_NOT_FOUND: notFound('Login connection not found') };
const OfLogin = z.object({ user_id: z.uuid(), login_connection_id: z.uuid() });

export const adminDisconnectLoginConnection = command({
  name: 'adminDisconnectLoginConnection',
  summary: "Takes one of a user's logins away, but the last one",
  rest: del('/v1/admin/users/{user_id}/login-connections/{login_connection_id}'),
  guard: [adminPermission('users:edit')],
  input: OfLogin,
  output: z.boolean(),
  errors: {
    ...USER_NOT_FOUND,
    ...LOGIN_NOT_FOUND,
    ...BEYOND_OWN,
    LAST_LOGIN: conflict('The last login connection cannot be removed'),
  },
  async run({ input: { user_id, login_connection_id }, caller, act, refuse }, services) {
    const disconnect = { type: 'user:disconnect_login', login_connection_id } as const;
    const additionalWrites = async (_decided: readonly UserEvent[], { admin_roles }: User) => {
      await requireWithin(services, caller, admin_roles, refuse);
      return [];
    };
    const known = await endsOfLogin(services.db, { user_id, login_connection_id, session_id: null });
    const { events } = await act(user, userStream(user_id), disconnect, {
      reservations: loginReservations,
      additionalWrites,
    });
    await endRemovedLogins(act, services, events, known);
    return true;
  },
});

export const adminClearLoginConnectionReconnectFlag = command({
  name: 'adminClearLoginConnectionReconnectFlag',
  summary: "Clears the reconnect prompt of one of a user's logins",
  rest: put('/v1/admin/users/{user_id}/login-connections/{login_connection_id}/reconnect-flag'),
  guard: [adminPermission('users:edit')],
  input: OfLogin,
  output: z.boolean(),
  errors: { ...USER_NOT_FOUND, ...LOGIN_NOT_FOUND },
  async run({ input: { user_id, login_connection_id }, act }) {
    await act(user, userStream(user_id), { type: 'user:clear_login_reconnect', login_connection_id });
    return true;
  },
});
