import { z } from 'zod';
import { AccountCreationOverride, AdminUser, AdminUserDetail, adminUserOf } from '../access/admin-users';
import type { Caller } from '../access/caller';
import { userLeaves } from '../access/deletion';
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
} from '../access/operation';
import { changeProfile, profileInput } from '../access/profiles';
import { lackedByAdmin } from '../access/granted';
import type { Services } from '../access/services';
import { load } from '../access/states';
import { adminRole, adminRoleStream, SUPER_ADMIN } from '../domain/admin-roles';
import { ADMIN_PERMISSIONS, isAdminPermission } from '../domain/permissions';
import { loginReservations } from '../domain/login-connections';
import { userOverrides, userOverrideStream } from '../domain/user-overrides';
import { user, userStream, type User, type UserEvent } from '../domain/users';

const USER_NOT_FOUND = { USER_NOT_FOUND: notFound('User not found') };
const MOST_ACCOUNTS = 2 ** 31 - 1;

/** @throws what the operation answers where nobody has this id */
async function requireUser(
  { events }: Services,
  user_id: string,
  refuse: Refuse<typeof USER_NOT_FOUND>,
): Promise<User> {
  const found = await load(events, user, userStream(user_id));
  if (found === null || found.state.deleted) throw refuse('USER_NOT_FOUND');
  return found.state;
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
        .max(MOST_ACCOUNTS)
        .nullish()
        .describe('Null: as the plan says'),
    })
    .refine(
      ({ id: _id, ...changes }) => Object.values(changes).some((value) => value !== undefined),
      'At least one field must be given',
    )
    .meta({ id: 'AdminUpdateUserInput' }),
  output: AdminUserDetail,
  errors: USER_NOT_FOUND,
  async run({ input, act, refuse }, services) {
    const { id: user_id, account_creation_override, max_accounts_override, ...profile } = input;
    await requireUser(services, user_id, refuse);
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

const BEYOND_OWN = { PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}') };

/** A deletion takes the user's admin roles away, so the caller must hold all that these grant. */
async function requireWithin(
  { events }: Services,
  caller: Caller,
  admin_roles: ReadonlySet<string>,
  refuse: Refuse<typeof BEYOND_OWN>,
): Promise<void> {
  for (const key of admin_roles) {
    const role = key === SUPER_ADMIN.key ? null : await load(events, adminRole, adminRoleStream(key));
    const granted = role === null ? ADMIN_PERMISSIONS : (role.state.permissions ?? []).filter(isAdminPermission);
    const permission = lackedByAdmin(caller, role?.state.status === 'deleted' ? [] : granted);
    if (permission !== undefined) throw refuse('PERMISSION_BEYOND_OWN', { permission });
  }
}

/** Memberships, keys, sessions and what is readable of them follow (reactors/users.ts). Source: extra-facts §27. */
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
    // The roles are those that this deletion takes away: a list read before it may lack one given a moment ago.
    const also = async (decided: readonly UserEvent[]) => {
      const taken = decided.flatMap((event) => (event.type === 'user:admin_role_removed' ? [event.role] : []));
      const admin_roles = new Set(taken);
      await requireWithin(services, caller, admin_roles, refuse);
      return userLeaves(services, context, user_id, { admin_roles });
    };
    await act(user, userStream(user_id), { type: 'user:delete' }, { reservations: loginReservations, also });
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
    LAST_LOGIN: conflict('The last login connection cannot be removed'),
  },
  async run({ input: { user_id, login_connection_id }, act }) {
    const disconnect = { type: 'user:disconnect_login', login_connection_id } as const;
    await act(user, userStream(user_id), disconnect, { reservations: loginReservations });
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
