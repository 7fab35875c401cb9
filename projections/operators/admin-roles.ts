import { ADMIN_ROLE_EVENTS } from '../../domain/operators/admin-roles';
import { sql } from '../../kernel/sql';
import { all, eventProjection, noEffect } from '../runtime/drive/handlers';

/** Roles of operators. A deleted role leaves no row; the read model of users has the holders. */
export const adminRoles = eventProjection({
  name: 'admin-roles',
  version: 1,
  tables: ['admin_roles'],
  rights: true,
  events: [ADMIN_ROLE_EVENTS],
  on: {
    'admin_role:created': all(sql`
      insert into admin_roles (id, key, name, description, is_system, permissions, created_at, updated_at)
      select role_id, key, name, description, is_system, permissions, created_at, created_at from e
      on conflict (id) do nothing`),
    'admin_role:updated': sql`
      update admin_roles r set name = e.name, description = e.description, permissions = e.permissions,
        updated_at = e.updated_at
      from e where r.id = e.role_id`,
    'admin_role:deleted': all(sql`delete from admin_roles r using e where r.id = e.role_id`),
    'admin_role:holder_left': noEffect,
  },
  // A system role always grants the same; any other role is identified by its id.
  revokes: {
    'admin_role:updated': sql`
      select h.user_id::text as user_id from user_admin_roles h join e on h.role = e.role_id::text`,
  },
});
