import { USER_ROLE_EVENTS } from '../../domain/operators/user-roles';
import { USER_EVENTS } from '../../domain/identity/users';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/** Users whose rights follow from a role: its holders, or everybody for the default role. */
const CONCERNED = sql`
  select h.user_id::text as user_id from user_role_holders h join e on e.role_id = h.role_id
  union all select null from user_roles r join e on e.role_id = r.id where r.is_default`;

/** Roles of users, and the holders of roles other than the default one. */
export const userRoles = eventProjection({
  name: 'user-roles',
  version: 2,
  tables: ['user_roles', 'user_role_holders'],
  rights: true,
  events: [USER_ROLE_EVENTS, pick(USER_EVENTS, 'user:deleted')],
  on: {
    'user:deleted': all(sql`delete from user_role_holders d using e where d.user_id = e.user_id`),
    'user_role:created': all(sql`
      insert into user_roles
        (id, slug, name, description, permissions, is_system, is_default, created_at, updated_at)
      select role_id, slug, name, description, permissions, is_system, is_default, created_at, created_at from e
      on conflict (id) do nothing`),
    'user_role:updated': sql`
      update user_roles r set name = e.name, description = e.description, permissions = e.permissions,
        updated_at = e.updated_at
      from e where r.id = e.role_id`,
    'user_role:deleted': all(
      sql`delete from user_role_holders h using e where h.role_id = e.role_id`,
      sql`delete from user_roles r using e where r.id = e.role_id`,
    ),
    'user_role:given': lastPer(
      ['user_id'],
      sql`delete from user_role_holders h using e where h.user_id = e.user_id and e.role_id is null`,
      sql`
      insert into user_role_holders (user_id, role_id, given_at)
      select user_id, role_id, given_at from e where role_id is not null
      on conflict (user_id) do update set role_id = excluded.role_id, given_at = excluded.given_at`,
    ),
  },
  revokes: {
    'user_role:updated': CONCERNED,
    'user_role:deleted': CONCERNED,
    'user_role:given': ({ user_id }) => ({ user_id }),
  },
});
