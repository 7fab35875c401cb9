import { z } from 'zod';
import { AdminRole, adminRoles as rolesOf, keyOf } from '../../views/operators/admin-roles';
import { adminPermission, get, notFound, query, whole } from '../../app/operation';
import { firstMissingAdminPermission } from '../../access/authorization/role-grants';
import { ADMIN_PERMISSIONS } from '../../domain/common/permissions';

const ADMIN_ROLE_NOT_FOUND = { ADMIN_ROLE_NOT_FOUND: notFound('Admin role not found') };
const read = [adminPermission('admin-roles:read')] as const;

export const adminRoles = query({
  name: 'adminRoles',
  // Source: spec doc2 §4.2.
  summary: 'Roles of operators, with what they grant and how many hold them',
  rest: get('/v1/admin/admin-roles'),
  pages: whole(),
  guard: read,
  input: z.object({}),
  output: AdminRole,
  run: (_request, { db }) => rolesOf(db),
});

export const adminRole = query({
  name: 'adminRole',
  // Source: spec doc2 §4.2.
  summary: 'One role of operators',
  rest: get('/v1/admin/admin-roles/{id}'),
  guard: read,
  input: z.object({ id: z.uuid() }),
  output: AdminRole,
  errors: ADMIN_ROLE_NOT_FOUND,
  async run({ input, refuse }, { db }) {
    const [role] = await rolesOf(db, input.id);
    if (role === undefined) throw refuse('ADMIN_ROLE_NOT_FOUND');
    return role;
  },
});

const AdminRoleMember = z
  .object({
    user_id: z.uuid(),
    display_name: z.string(),
    email: z.string().nullable(),
    avatar_url: z.string().nullable(),
    assigned_at: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'AdminRoleMember' });

export const adminRoleMembers = query({
  name: 'adminRoleMembers',
  // Source: spec doc2 §4.3.
  summary: 'Who holds a role of operators, the latest first',
  rest: get('/v1/admin/admin-roles/{role_id}/members'),
  pages: whole(),
  guard: read,
  input: z.object({ role_id: z.uuid() }),
  output: AdminRoleMember,
  errors: ADMIN_ROLE_NOT_FOUND,
  async run({ input: { role_id }, refuse }, { db }) {
    const rows = await db.query<z.output<typeof AdminRoleMember>>(
      `select h.user_id, coalesce(p.display_name, '') as display_name, p.email, p.avatar_url, h.assigned_at
       from user_admin_roles h left join profiles p on p.user_id = h.user_id
       where h.role = $1 order by h.assigned_at desc, h.user_id`,
      [keyOf(role_id)],
      'admin-role-members',
    );
    if (rows.length === 0 && (await rolesOf(db, role_id)).length === 0) throw refuse('ADMIN_ROLE_NOT_FOUND');
    return rows;
  },
});

const AdminPermissionInfo = z
  .object({ permission: z.string(), category: z.string() })
  .meta({ id: 'AdminPermissionInfo' });

export const allAdminPermissions = query({
  name: 'allAdminPermissions',
  // Source: spec doc2 §4.3.
  summary: 'Every permission that a role of operators may grant',
  rest: get('/v1/admin/admin-permissions'),
  pages: whole(),
  guard: read,
  input: z.object({}),
  output: AdminPermissionInfo,
  run: async () => ADMIN_PERMISSIONS.map(infoOf),
});

export const adminAssignablePermissions = query({
  name: 'adminAssignablePermissions',
  // Source: spec doc2 §4.3.
  summary: 'The permissions that the caller may put into a role of operators: those that they hold',
  rest: get('/v1/admin/admin-permissions/assignable'),
  pages: whole(),
  guard: read,
  input: z.object({}),
  output: AdminPermissionInfo,
  run: async ({ caller }) =>
    ADMIN_PERMISSIONS.filter((name) => firstMissingAdminPermission(caller, [name]) === undefined).map(infoOf),
});

const infoOf = (permission: string) => ({ permission, category: permission.slice(0, permission.indexOf(':')) });
