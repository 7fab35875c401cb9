import { z } from 'zod';
import { AdminRole, holdersOf, keyOf, permissionsOf, toRoleView } from '../../views/operators/admin-roles';
import type { Caller } from '../../access/authentication/caller';
import { adminPermission, command, conflict, del, forbidden, invalid, notFound } from '../../app/operation';
import { patch, post, put, type Refuse } from '../../app/operation';
import { roleChanges, roleInput } from '../../app/role-input';
import { firstMissingAdminPermission } from '../../access/authorization/role-grants';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { superAdminRemovalWrites } from '../../services/identity/super-admins';
import {
  adminRole,
  adminRoleReservations,
  adminRoleStream,
  SUPER_ADMIN,
  type AdminRole as RoleState,
} from '../../domain/operators/admin-roles';
import { ADMIN_PERMISSIONS, isAdminPermission } from '../../domain/common/permissions';
import { permissionsAfter } from '../../domain/operators/role-permissions';
import { user, userStream } from '../../domain/identity/users';

const fields = roleInput(ADMIN_PERMISSIONS);

const CreateAdminRoleInput = z.object(fields).meta({ id: 'CreateAdminRoleInput' });
const UpdateAdminRoleInput = z.object(roleChanges(fields)).meta({ id: 'UpdateAdminRoleInput' });

const NOT_FOUND = { ADMIN_ROLE_NOT_FOUND: notFound('Admin role not found') };
const BEYOND_OWN = { PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}') };
const WRITTEN = {
  ...BEYOND_OWN,
  UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}'),
  TAKEN: invalid('Role name already in use'),
  // A character that a stream's name holds escaped counts several times: 100 ordinary ones always fit.
  VALUE_TOO_LONG: invalid('Name must be 100 characters or less'),
};

/** Refuses permissions that the caller does not hold. Source: spec rulings, "roles". */
function requireHeld(caller: Caller, wanted: Iterable<string>, refuse: Refuse<typeof BEYOND_OWN>): void {
  const permission = firstMissingAdminPermission(caller, wanted);
  if (permission !== undefined) throw refuse('PERMISSION_BEYOND_OWN', { permission });
}

export const adminCreateRole = command({
  name: 'adminCreateRole',
  // Source: spec doc2 §4.2.
  summary: 'Makes a role of operators; it always grants admin:access',
  rest: post('/v1/admin/admin-roles', {
    status: 201,
    location: ({ id }: AdminRole) => `/v1/admin/admin-roles/${id}`,
  }),
  graphql: { argument: 'input' },
  guard: [adminPermission('admin-roles:create')],
  input: CreateAdminRoleInput,
  output: AdminRole,
  errors: WRITTEN,
  async run({ input, caller, act, newId, refuse }, { db }) {
    const { name, description = null, permissions } = input;
    requireHeld(caller, permissionsAfter([], permissions, isAdminPermission), refuse);
    const role_id = newId('admin-role');
    const create = { type: 'admin_role:create', role_id, name, description, permissions } as const;
    const { state } = await act(adminRole, adminRoleStream(role_id), create, { reservations: adminRoleReservations });
    return toRoleView(db, state);
  },
});

export const adminUpdateRole = command({
  name: 'adminUpdateRole',
  // Source: spec doc2 §4.3.
  summary: 'Changes a role of operators; what is left out stays as it is',
  rest: patch('/v1/admin/admin-roles/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [adminPermission('admin-roles:edit')],
  input: UpdateAdminRoleInput,
  output: AdminRole,
  errors: {
    ...NOT_FOUND,
    ...WRITTEN,
    RAISES_OWN_ROLE: forbidden('You cannot add permissions to a role that you hold'),
    SUPER_ADMIN_HOLDS_ALL: conflict('The super admin role keeps every permission'),
  },
  async run({ input: { id, ...changes }, caller, act, refuse }, services) {
    const { db, events, access } = services;
    const own = caller.user_id === null ? null : await load(events, user, userStream(caller.user_id));
    const held = own?.state.admin_roles ?? new Set<string>();
    const update = { type: 'admin_role:update', ...changes } as const;
    const { state } = await act(adminRole, adminRoleStream(id), update, {
      precondition(role) {
        if (role.status !== 'there') return refuse('ADMIN_ROLE_NOT_FOUND');
        if (changes.permissions === undefined) return;
        const before = new Set(permissionsOf(role));
        const after = permissionsAfter([...before], changes.permissions, isAdminPermission);
        const added = after.filter((name) => !before.has(name));
        // Removing a permission requires it too, so that nobody can empty a role that they may not delete.
        const taken = role.is_system ? [] : known(role).filter((name) => !after.includes(name));
        requireHeld(caller, [...added, ...taken], refuse);
        return added.length > 0 && held.has(role.key) && refuse('RAISES_OWN_ROLE');
      },
      reservations: adminRoleReservations,
    });
    for (const user_id of await holdersOf(db, state.key)) await access.announce({ user_id });
    return toRoleView(db, state);
  },
});

export const adminDeleteRole = command({
  name: 'adminDeleteRole',
  // Source: spec doc2 §4.3.
  summary: 'Deletes a role of operators and takes it from everybody who holds it',
  rest: del('/v1/admin/admin-roles/{id}'),
  guard: [adminPermission('admin-roles:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.boolean(),
  errors: { ...NOT_FOUND, ...BEYOND_OWN, SYSTEM_ADMIN_ROLE: conflict('Cannot delete system admin role') },
  async run({ input: { id }, caller, act, refuse }, { db, access }) {
    const holders = await holdersOf(db, keyOf(id));
    await act(
      adminRole,
      adminRoleStream(id),
      { type: 'admin_role:delete' },
      {
        precondition(role) {
          if (role.status !== 'there') return refuse('ADMIN_ROLE_NOT_FOUND');
          if (!role.is_system) requireHeld(caller, known(role), refuse);
        },
        reservations: adminRoleReservations,
      },
    );
    for (const user_id of holders) await access.announce({ user_id });
    return true;
  },
});

const Assignment = z.object({ role_id: z.uuid(), user_id: z.uuid() });
const ASSIGNED = { ...NOT_FOUND, ...BEYOND_OWN, USER_NOT_FOUND: notFound('User not found') };

/**
 * Returns the role's key; requires that the caller holds all that the role grants, for assigning and for removing it.
 */
async function roleWithin(
  { events }: Services,
  { caller, input, refuse }: { caller: Caller; input: { role_id: string }; refuse: Refuse<typeof ASSIGNED> },
): Promise<string> {
  const found = await load(events, adminRole, adminRoleStream(input.role_id));
  if (found?.state.status !== 'there') throw refuse('ADMIN_ROLE_NOT_FOUND');
  requireHeld(caller, known(found.state), refuse);
  return found.state.key;
}

const known = (role: RoleState) => permissionsOf(role).filter(isAdminPermission);

export const adminAssignUserRole = command({
  name: 'adminAssignUserRole',
  // Source: spec doc2 §4.3.
  summary: 'Gives a user a role of operators; true when they did not hold it yet',
  rest: put('/v1/admin/admin-roles/{role_id}/members/{user_id}'),
  guard: [adminPermission('admin-roles:edit')],
  input: Assignment,
  output: z.boolean(),
  errors: ASSIGNED,
  async run(request, services) {
    const { user_id } = request.input;
    const role = await roleWithin(services, request);
    const { events } = await request.act(user, userStream(user_id), { type: 'user:assign_admin_role', role });
    await services.access.announce({ user_id });
    return events.length > 0;
  },
});

export const adminUnassignUserRole = command({
  name: 'adminUnassignUserRole',
  // Source: spec doc2 §4.3.
  summary: 'Takes a role of operators from a user; true when they held it',
  rest: del('/v1/admin/admin-roles/{role_id}/members/{user_id}'),
  guard: [adminPermission('admin-roles:edit')],
  input: Assignment,
  output: z.boolean(),
  errors: { ...ASSIGNED, LAST_SUPER_ADMIN: conflict('The last super admin cannot be taken away') },
  async run(request, services) {
    const { user_id } = request.input;
    const role = await roleWithin(services, request);
    const { events } = await request.act(
      user,
      userStream(user_id),
      { type: 'user:remove_admin_role', role },
      {
        additionalWrites: () =>
          role === SUPER_ADMIN.key ? superAdminRemovalWrites(services, request.context, user_id) : [],
      },
    );
    await services.access.announce({ user_id });
    return events.length > 0;
  },
});
