import { ADMIN_ROLE_EVENTS } from '../domain/admin-roles';
import { USER_EVENTS } from '../domain/users';
import { sql } from '../kernel/sql';
import { all, handled, ignored, pick } from './runtime/handlers';

const ofUser = ({ user_id }: { user_id: string }) => ({ user_id });

/** Users and the admin roles they hold. */
export const users = handled({
  name: 'users',
  version: 3,
  tables: ['users', 'user_admin_roles'],
  events: [USER_EVENTS, pick(ADMIN_ROLE_EVENTS, 'admin_role:deleted')],
  on: {
    'user:registered': all(sql`
      insert into users (id, created_at) select user_id, registered_at from e on conflict (id) do nothing`),
    // Logins have a read model of their own.
    'user:login_connected': ignored,
    'user:login_disconnected': ignored,
    'user:login_reconnect_required': ignored,
    'user:login_reconnect_cleared': ignored,
    'user:admin_role_assigned': all(sql`
      insert into user_admin_roles (user_id, role, assigned_at) select user_id, role, assigned_at from e
      on conflict (user_id, role) do nothing`),
    'user:admin_role_removed': all(sql`
      delete from user_admin_roles r using e where r.user_id = e.user_id and r.role = e.role`),
    'admin_role:deleted': all(sql`delete from user_admin_roles r using e where r.role = e.key`),
  },
  revokes: {
    'user:admin_role_assigned': ofUser,
    'user:admin_role_removed': ofUser,
    'admin_role:deleted': sql`select h.user_id::text as user_id from user_admin_roles h join e on h.role = e.key`,
  },
});
