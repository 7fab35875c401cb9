import { z } from 'zod';
import { shownInstant } from '../../lib/time/instants';
import type { UserRole as RoleState } from '../../domain/operators/user-roles';
import type { Queryable } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });

/** Source: spec extra-facts §5. */
export const UserRole = z
  .object({
    id: z.uuid(),
    slug: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    permissions: z.array(z.string()).describe('Sorted'),
    is_system: z.boolean(),
    is_default: z.boolean().describe('Of everybody who was given no other'),
    member_count: z.int(),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'UserRole' });
export type UserRole = z.output<typeof UserRole>;

const HOLDERS = `case when r.is_default then (select count(*) from users) - (select count(*) from user_role_holders)
  else (select count(*) from user_role_holders h where h.role_id = r.id) end::int`;

/** All roles, system roles first, then by name; with `id` only that one. */
export const userRoles = (db: Queryable, id: string | null = null): Promise<UserRole[]> =>
  db.query<UserRole>(
    `select id, slug, name, description, permissions, is_system, is_default, ${HOLDERS} as member_count,
       created_at, updated_at
     from user_roles r where $1::uuid is null or id = $1
     order by is_default desc, is_system desc, lower(name), id`,
    [id],
    'user-roles',
  );

/** Names and slugs of all roles. */
export const userRoleNames = (db: Queryable): Promise<{ id: string; slug: string; name: string }[]> =>
  db.query('select id, slug, name from user_roles', [], 'user-role-names');

/** Answer for a role from its decided state; only the number of members is from the read model. */
export async function shownUserRole(db: Queryable, role: RoleState): Promise<UserRole> {
  const { status: _status, role_id: id, permissions, ...rest } = role;
  const [shown] = await userRoles(db, id);
  return {
    ...rest,
    id,
    permissions: [...permissions],
    member_count: shown?.member_count ?? 0,
    created_at: shownInstant(role.created_at),
    updated_at: shownInstant(role.updated_at),
  };
}
