import { USER_EVENTS } from '../../domain/identity/users';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/** Logins of people; a removed login leaves no row. */
export const loginConnections = eventProjection({
  name: 'login-connections',
  version: 2,
  tables: ['login_connections'],
  events: [
    pick(
      USER_EVENTS,
      'user:login_connected',
      'user:login_disconnected',
      'user:login_reconnect_required',
      'user:login_reconnect_cleared',
    ),
  ],
  on: {
    'user:login_connected': all(sql`
      insert into login_connections (id, user_id, provider, connected_at)
      select login_connection_id, user_id, provider, connected_at from e on conflict (id) do nothing`),
    'user:login_disconnected': all(sql`delete from login_connections c using e where c.id = e.login_connection_id`),
    'user:login_reconnect_required': lastPer(
      ['login_connection_id'],
      sql`update login_connections c set reconnect_required = true from e where c.id = e.login_connection_id`,
    ),
    'user:login_reconnect_cleared': lastPer(
      ['login_connection_id'],
      sql`update login_connections c set reconnect_required = false from e where c.id = e.login_connection_id`,
    ),
  },
});
