import { z } from 'zod';
import { ACCOUNT_NOT_FOUND } from '../../views/accounts/accounts';
import { Role, rolesOf } from '../../views/accounts/roles';
import { GRANT_ERRORS, grantorOf } from '../../access/authorization/delegation';
import { displayNameInput } from '../../app/name-inputs';
import { command, conflict, del, notFound, patch, permission, post } from '../../app/operation';
import { ROLE_COLOR } from '../../domain/accounts/roles';
import { account, accountStream } from '../../domain/accounts/accounts';
import { ACCOUNT_PERMISSIONS } from '../../domain/common/permissions';

const name = displayNameInput('Name is required', 'Name must be 100 characters or less');
const description = z.string().trim().max(500, 'description must be 500 characters or less');
const color = z.string().regex(/^#[0-9a-f]{6}$/i, 'color must be #rrggbb');
const permissions = z
  .array(
    z
      .string()
      .max(100)
      .meta({ enum: [...ACCOUNT_PERMISSIONS] }),
  )
  .max(500);

const ROLE_NOT_FOUND = { ROLE_NOT_FOUND: notFound('Role not found') };
const ROLE_NAME_TAKEN = { ROLE_NAME_TAKEN: conflict('Role name already in use') };

/** Source: spec doc1 §5.9 rule 3, rulings c07 and "roles". */
export const createRole = command({
  name: 'createRole',
  summary: 'Makes a role for members of the active account, with permissions that the caller holds',
  rest: post('/v1/roles', { status: 201, location: ({ id }: z.output<typeof Role>) => `/v1/roles/${id}` }),
  graphql: { argument: 'input' },
  guard: [permission('roles:edit')],
  input: z
    .object({ name, description: description.nullish(), color: color.nullish(), permissions })
    .meta({ id: 'CreateRoleInput' }),
  output: Role,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...GRANT_ERRORS,
    ...ROLE_NAME_TAKEN,
    TOO_MANY_ROLES: conflict('The account has as many roles as it can have; delete one first'),
  },
  async run({ input, caller, act, newId }) {
    const { account_id } = caller;
    const role_id = newId('role');
    const { events } = await act(account, accountStream(account_id), {
      type: 'account:create_role',
      role_id,
      name: input.name,
      description: input.description || null,
      color: input.color?.toLowerCase() ?? ROLE_COLOR,
      permissions: input.permissions,
      by: grantorOf(caller),
    });
    const created = events.find((event) => event.type === 'account:role_created')!;
    const { slug, name, description, color, permissions } = created;
    const made = { id: role_id, account_id, slug, name, description, color, permissions };
    return { ...made, is_system: false, is_default: false, member_count: 0 };
  },
});

/** Source: spec doc1 §5.9 rule 3, extra-facts §5, rulings "roles". */
export const updateRole = command({
  name: 'updateRole',
  summary: 'Changes a role of the active account; permissions are replaced as a whole',
  rest: patch('/v1/roles/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [permission('roles:edit')],
  input: z
    .object({
      id: z.uuid(),
      name: name.optional(),
      description: description.nullish().describe('Null takes it away'),
      color: color.optional(),
      permissions: permissions.optional(),
    })
    .meta({ id: 'UpdateRoleInput' }),
  output: Role,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...GRANT_ERRORS,
    ...ROLE_NOT_FOUND,
    ...ROLE_NAME_TAKEN,
    SYSTEM_ROLE: conflict('The Owner role cannot be changed'),
    DEFAULT_ROLE_NAME: conflict('Default roles keep their names'),
  },
  async run({ input, caller, act, refuse }, { db, access }) {
    const { account_id } = caller;
    const { id: role_id, name, description, color, permissions } = input;
    const changes = {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description: description || null }),
      ...(color !== undefined && { color: color.toLowerCase() }),
      ...(permissions !== undefined && { permissions }),
    };
    await act(account, accountStream(account_id), {
      type: 'account:change_role',
      role_id,
      changes,
      by: grantorOf(caller),
    });
    await access.announce({ account_id });
    const [role] = await rolesOf(db, account_id, role_id);
    if (role === undefined) throw refuse('ROLE_NOT_FOUND');
    return role;
  },
});

export const deleteRole = command({
  name: 'deleteRole',
  summary: 'Deletes a role that nobody holds, with the invites that offer it',
  rest: del('/v1/roles/{id}'),
  guard: [permission('roles:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteRoleResult' }),
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...ROLE_NOT_FOUND,
    DEFAULT_ROLE: conflict('Default roles cannot be deleted'),
    ROLE_IN_USE: conflict('The role is held by members; give them another one first'),
  },
  async run({ input: { id: role_id }, caller: { account_id }, act }) {
    await act(account, accountStream(account_id), { type: 'account:delete_role', role_id });
    return { success: true };
  },
});
