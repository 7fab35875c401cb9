import { z } from 'zod';
import type { Caller } from '../../access/authentication/caller';
import { adminPermission, command, conflict, del, forbidden, invalid, notFound } from '../../app/operation';
import { patch, post, put, type Refuse } from '../../app/operation';
import { roleChanges, roleInput } from '../../app/role-input';
import { firstMissingAdminPermission } from '../../access/authorization/role-grants';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { shownUserRole, UserRole, userRoleNames } from '../../views/operators/user-roles';
import { isAdminPermission, isUserRolePermission, USER_ROLE_PERMISSIONS } from '../../domain/common/permissions';
import { reservation, reservationStream, Taken } from '../../domain/common/reservations';
import { comparableName, freeSlug } from '../../domain/common/slugs';
import { permissionsAfter } from '../../domain/operators/role-permissions';
import {
  USER_ROLE_SLUG,
  userRole,
  userRoleHolder,
  userRoleHolderStream,
  userRoleReservations,
  userRoleStream,
} from '../../domain/operators/user-roles';
import { user, userStream } from '../../domain/identity/users';

const fields = roleInput(USER_ROLE_PERMISSIONS);

const NOT_FOUND = { USER_ROLE_NOT_FOUND: notFound('User role not found') };
const BEYOND_OWN = { PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}') };
const UNKNOWN = { UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}') };

/**
 * Requires the admin permission of the same name for a permission that exists in both scopes. Others are unrestricted,
 * because everybody has them by default.
 */
function requireRoleGrantable(caller: Caller, wanted: readonly string[], refuse: Refuse<typeof BEYOND_OWN>): void {
  const permission = firstMissingAdminPermission(caller, wanted.filter(isAdminPermission));
  if (permission !== undefined) throw refuse('PERMISSION_BEYOND_OWN', { permission });
}

export const createUserRole = command({
  name: 'createUserRole',
  summary: 'Makes a role of people; its slug follows from its name',
  rest: post('/v1/user-roles', { status: 201, location: ({ id }: UserRole) => `/v1/user-roles/${id}` }),
  graphql: { argument: 'input' },
  guard: [adminPermission('user-roles:create')],
  input: z.object(fields).meta({ id: 'CreateUserRoleInput' }),
  output: UserRole,
  errors: {
    ...BEYOND_OWN,
    ...UNKNOWN,
    TAKEN: conflict('Role name already in use'),
  },
  async run({ input, caller, act, newId, refuse }, { db, events }) {
    const { name, description = null, permissions } = input;
    const role_id = newId('user-role');
    const others = (await userRoleNames(db)).filter(({ id }) => id !== role_id);
    const sameName = (other: string) => comparableName(other) === comparableName(name);
    const slugs = new Set(others.map(({ slug }) => slug));
    for (;;) {
      const slug = freeSlug(name, slugs);
      const create = { type: 'user_role:create', role_id, slug, name, description, permissions } as const;
      try {
        const { state } = await act(userRole, userRoleStream(role_id), create, {
          precondition() {
            requireRoleGrantable(caller, permissionsAfter([], permissions, isUserRolePermission), refuse);
            return others.some((other) => sameName(other.name)) && refuse('TAKEN');
          },
          reservations: userRoleReservations,
        });
        return await shownUserRole(db, state);
      } catch (error) {
        // The role that holds the slug is newer than the read model.
        if (!(error instanceof Taken)) throw error;
        const { owner } = (await load(events, reservation, reservationStream(USER_ROLE_SLUG, slug)))?.state ?? {};
        const holder = owner ? await load(events, userRole, userRoleStream(owner)) : null;
        if (holder !== null && sameName(holder.state.name)) throw error;
        slugs.add(slug);
      }
    }
  },
});

export const updateUserRole = command({
  name: 'updateUserRole',
  summary: 'Changes a role of people; what is left out stays, and so does the slug',
  rest: patch('/v1/user-roles/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [adminPermission('user-roles:edit')],
  input: z.object(roleChanges(fields)).meta({ id: 'UpdateUserRoleInput' }),
  output: UserRole,
  errors: { ...NOT_FOUND, ...BEYOND_OWN, ...UNKNOWN },
  async run({ input: { id, ...changes }, caller, act, refuse }, services) {
    const update = { type: 'user_role:update', ...changes } as const;
    const { state, events } = await act(userRole, userRoleStream(id), update, {
      precondition(role) {
        if (role.status !== 'there') return refuse('USER_ROLE_NOT_FOUND');
        const before = new Set(role.permissions);
        const after = permissionsAfter([...before], changes.permissions ?? [...before], isUserRolePermission);
        const added = after.filter((name) => !before.has(name));
        requireRoleGrantable(caller, added, refuse);
      },
    });
    if (events.length > 0) await announceHolders(services, id, state.is_default);
    return shownUserRole(services.db, state);
  },
});

export const deleteUserRole = command({
  name: 'deleteUserRole',
  summary: 'Deletes a role of people; who held it has the default one again',
  rest: del('/v1/user-roles/{id}'),
  guard: [adminPermission('user-roles:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.boolean(),
  errors: { ...NOT_FOUND, SYSTEM_USER_ROLE: conflict('Cannot delete system user role') },
  async run({ input: { id }, act }, services) {
    const reservations = userRoleReservations;
    await act(userRole, userRoleStream(id), { type: 'user_role:delete' }, { reservations });
    await announceHolders(services, id, true);
    return true;
  },
});

/** Invalidates the cached rights of the role's holders on every node; for the default role those of everybody. */
async function announceHolders({ db, access }: Services, role_id: string, all: boolean): Promise<void> {
  if (all) return access.announce({});
  const holders = await db.query<{ user_id: string }>(
    'select user_id from user_role_holders where role_id = $1',
    [role_id],
    'user-role-holders',
  );
  for (const { user_id } of holders) await access.announce({ user_id });
}

const Assignment = z.object({ role_id: z.uuid(), user_id: z.uuid() });
const ASSIGNED = { ...NOT_FOUND, USER_NOT_FOUND: notFound('User not found') };

/** @throws DomainError for an unknown role or user */
async function roleAndPerson(
  { events }: Services,
  { input, refuse }: { input: z.output<typeof Assignment>; refuse: Refuse<typeof ASSIGNED> },
): Promise<readonly string[]> {
  const role = await load(events, userRole, userRoleStream(input.role_id));
  if (role?.state.status !== 'there') throw refuse('USER_ROLE_NOT_FOUND');
  const person = await load(events, user, userStream(input.user_id));
  if (person === null || person.state.deleted) throw refuse('USER_NOT_FOUND');
  return role.state.permissions;
}

export const assignUserRole = command({
  name: 'assignUserRole',
  summary: 'Gives a person a role in place of the one they have; true when they did not have it yet',
  rest: put('/v1/user-roles/{role_id}/members/{user_id}'),
  guard: [adminPermission('user-roles:edit')],
  input: Assignment,
  output: z.boolean(),
  errors: { ...ASSIGNED, ...BEYOND_OWN },
  async run(request, services) {
    const { user_id, role_id } = request.input;
    requireRoleGrantable(request.caller, await roleAndPerson(services, request), request.refuse);
    const give = { type: 'user_role:give', user_id, role_id } as const;
    const { events } = await request.act(userRoleHolder, userRoleHolderStream(user_id), give);
    await services.access.announce({ user_id });
    return events.length > 0;
  },
});

export const unassignUserRole = command({
  name: 'unassignUserRole',
  summary: 'Takes a role from a person, who has the default one again; true when they had it',
  rest: del('/v1/user-roles/{role_id}/members/{user_id}'),
  guard: [adminPermission('user-roles:edit')],
  input: Assignment,
  output: z.boolean(),
  errors: ASSIGNED,
  async run(request, services) {
    const { user_id, role_id } = request.input;
    await roleAndPerson(services, request);
    const take = { type: 'user_role:take', user_id, role_id } as const;
    const { events } = await request.act(userRoleHolder, userRoleHolderStream(user_id), take);
    await services.access.announce({ user_id });
    return events.length > 0;
  },
});
