import { z } from 'zod';
import { SUPER_ADMIN, type AdminRole as RoleState } from '../../domain/operators/admin-roles';
import { shownInstant } from '../../lib/time/instants';
import { ADMIN_PERMISSIONS } from '../../domain/common/permissions';
import type { Queryable, Row } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });

/** Source: spec doc2 §2.7. */
export const AdminRole = z
  .object({
    id: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    is_system: z.boolean(),
    permissions: z.array(z.string()).describe('Sorted'),
    member_count: z.int(),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'AdminRole' });
export type AdminRole = z.output<typeof AdminRole>;

const ALL: readonly string[] = [...ADMIN_PERMISSIONS].sort();

/** Permissions of a role, sorted. */
export const permissionsOf = ({ permissions }: Pick<RoleState, 'permissions'>): readonly string[] => permissions ?? ALL;

/** All roles, system roles first, then by name; with `id` only that one. */
export async function adminRoles(db: Queryable, id: string | null = null): Promise<AdminRole[]> {
  const rows = await db.query<Omit<AdminRole, 'permissions'> & Pick<RoleState, 'permissions'> & Row>(
    `select id, name, description, is_system, permissions, created_at, updated_at,
       (select count(*)::int from user_admin_roles h where h.role = r.key) as member_count
     from admin_roles r where $1::uuid is null or id = $1 order by is_system desc, lower(name), id`,
    [id],
    'admin-roles',
  );
  return rows.map((role) => ({ ...role, permissions: [...permissionsOf(role)] }));
}

/** Answer for a role from its decided state, without waiting for the read model. */
export async function toRoleView(db: Queryable, role: RoleState): Promise<AdminRole> {
  const { role_id: id, key, name, description, is_system, created_at, updated_at } = role;
  const [held] = await db.query<{ count: number }>(
    'select count(*)::int as count from user_admin_roles where role = $1',
    [key],
    'admin-role-count',
  );
  return {
    id,
    name,
    description,
    is_system,
    permissions: [...permissionsOf(role)],
    member_count: held!.count,
    created_at: shownInstant(created_at),
    updated_at: shownInstant(updated_at),
  };
}

/** Key of the role in users' events and rows. */
export const keyOf = (role_id: string): string => (role_id === SUPER_ADMIN.role_id ? SUPER_ADMIN.key : role_id);

/** Ids of the users who hold the role. */
export async function holdersOf(db: Queryable, key: string): Promise<string[]> {
  const rows = await db.query<{ user_id: string }>(
    'select user_id from user_admin_roles where role = $1',
    [key],
    'admin-role-holders',
  );
  return rows.map(({ user_id }) => user_id);
}
