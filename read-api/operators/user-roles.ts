import { z } from 'zod';
import { adminPermission, get, notFound, numbered, query, whole } from '../../app/operation';
import { UserRole, userRoles as rolesOf } from '../../views/operators/user-roles';
import { USER_ROLE_PERMISSIONS } from '../../domain/common/permissions';

const USER_ROLE_NOT_FOUND = { USER_ROLE_NOT_FOUND: notFound('User role not found') };
const read = [adminPermission('user-roles:read')] as const;

/** Source: spec extra-facts §5. */
export const userRoles = query({
  name: 'userRoles',
  summary: 'Roles of people regardless of account, the default one first',
  rest: get('/v1/user-roles'),
  pages: whole(),
  guard: read,
  input: z.object({}),
  output: UserRole,
  run: (_request, { db }) => rolesOf(db),
});

export const userRole = query({
  name: 'userRole',
  summary: 'One role of people',
  rest: get('/v1/user-roles/{id}'),
  guard: read,
  input: z.object({ id: z.uuid() }),
  output: UserRole,
  errors: USER_ROLE_NOT_FOUND,
  async run({ input, refuse }, { db }) {
    const [role] = await rolesOf(db, input.id);
    if (role === undefined) throw refuse('USER_ROLE_NOT_FOUND');
    return role;
  },
});

const UserPermissionInfo = z
  .object({ permission: z.string(), category: z.string() })
  .meta({ id: 'UserPermissionInfo' });

export const userRolePermissions = query({
  name: 'userRolePermissions',
  summary: 'Every permission that a role of people may grant',
  rest: get('/v1/user-roles/permissions'),
  pages: whole(),
  guard: read,
  input: z.object({}),
  output: UserPermissionInfo,
  run: async () =>
    USER_ROLE_PERMISSIONS.map((permission) => ({ permission, category: permission.slice(0, permission.indexOf(':')) })),
});

const UserRoleMember = z
  .object({
    user_id: z.uuid(),
    display_name: z.string(),
    email: z.string().nullable(),
    avatar_url: z.string().nullable(),
    given_at: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'UserRoleMember' });

export const userRoleMembers = query({
  name: 'userRoleMembers',
  summary: 'Who was given a role of people, the latest first; nobody is given the default one',
  rest: get('/v1/user-roles/{role_id}/members'),
  pages: numbered('PaginatedUserRoleMemberResult'),
  guard: read,
  input: z.object({ role_id: z.uuid() }),
  output: UserRoleMember,
  errors: USER_ROLE_NOT_FOUND,
  async run({ input: { role_id }, page, refuse }, { db }) {
    const [role] = await rolesOf(db, role_id);
    if (role === undefined) throw refuse('USER_ROLE_NOT_FOUND');
    const items = await db.query<z.output<typeof UserRoleMember>>(
      `select h.user_id, coalesce(p.display_name, '') as display_name, p.email, p.avatar_url, h.given_at
       from user_role_holders h left join profiles p on p.user_id = h.user_id
       where h.role_id = $1 order by h.given_at desc, h.user_id limit $2 offset $3`,
      [role_id, page.limit, page.offset],
      'user-role-members',
    );
    return { items, total: role.is_default ? 0 : role.member_count };
  },
});
