import { ADMIN_ROLE_EVENTS } from '../../domain/operators/admin-roles';
import { SESSION_EVENTS } from '../../domain/identity/sessions';
import { USER_EVENTS } from '../../domain/identity/users';
import { sql } from '../../kernel/sql';
import { all, eventProjection, noEffect, lastPer, pick } from '../runtime/drive/handlers';

const ofUser = ({ user_id }: { user_id: string }) => ({ user_id });

/** Users, their last login, and their admin roles; a deleted user leaves no row. */
export const users = eventProjection({
  name: 'users',
  version: 4,
  tables: ['users', 'user_admin_roles'],
  rights: true,
  events: [USER_EVENTS, pick(ADMIN_ROLE_EVENTS, 'admin_role:deleted'), pick(SESSION_EVENTS, 'session:started')],
  on: {
    'user:registered': all(sql`
      insert into users (id, created_at) select user_id, registered_at from e on conflict (id) do nothing`),
    // Logins have a read model of their own.
    'user:login_connected': noEffect,
    'user:login_disconnected': noEffect,
    'user:login_reconnect_required': noEffect,
    'user:login_reconnect_cleared': noEffect,
    'user:admin_role_assigned': all(sql`
      insert into user_admin_roles (user_id, role, assigned_at) select user_id, role, assigned_at from e
      on conflict (user_id, role) do nothing`),
    'user:admin_role_removed': all(sql`
      delete from user_admin_roles r using e where r.user_id = e.user_id and r.role = e.role`),
    'user:deleted': all(sql`delete from users u using e where u.id = e.user_id`),
    'session:started': lastPer(
      ['user_id'],
      sql`update users u set last_login_at = e.started_at from e where u.id = e.user_id`,
    ),
    'admin_role:deleted': all(sql`delete from user_admin_roles r using e where r.role = e.key`),
  },
  revokes: {
    'user:admin_role_assigned': ofUser,
    'user:admin_role_removed': ofUser,
    'user:deleted': ofUser,
    'admin_role:deleted': sql`select h.user_id::text as user_id from user_admin_roles h join e on h.role = e.key`,
  },
});
