import { z } from 'zod';
import { ACCOUNT_PERMISSIONS } from '../../domain/common/permissions';
import type { Queryable } from '../../engines/postgres/port';

/** A role of an account as shown to its members. Source: spec extra-facts §5. */
export const Role = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    slug: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    color: z.string().describe('#rrggbb'),
    is_system: z.boolean().describe('Can be neither changed nor deleted: the Owner'),
    is_default: z.boolean().describe('Was there from the beginning and cannot be deleted'),
    permissions: z.array(z.string()),
    member_count: z.int(),
  })
  .meta({ id: 'Role' });
export type Role = z.output<typeof Role>;

/** The roles of an account in their order; with `id` only that one. */
export async function rolesOf(db: Queryable, account_id: string, id: string | null = null): Promise<Role[]> {
  const rows = await db.query<Role & { holds_all: boolean }>(
    `select r.id, r.account_id, r.slug, r.name, r.description, r.color, r.is_system, r.is_default, r.holds_all,
       r.permissions, coalesce(held.members, 0) as member_count
     from account_roles r
     left join (
       select role_id, count(*)::int as members from account_members where account_id = $1 group by role_id) held
       on held.role_id = r.id
     where r.account_id = $1 and ($2::uuid is null or r.id = $2) order by r.position, r.id`,
    [account_id, id],
    'account-roles',
  );
  return rows.map(({ holds_all, ...role }) => ({
    ...role,
    permissions: holds_all ? [...ACCOUNT_PERMISSIONS] : role.permissions,
  }));
}
