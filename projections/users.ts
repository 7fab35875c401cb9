import { USER_EVENTS } from '../domain/users';
import { lastRowsOf, rowsOf, runsByType } from './event-runs';
import { projection, type EventProjection } from './projection';
import { recordRevocations } from './revocations';

/** Users and the admin roles they hold. */
export const users = projection<EventProjection>({
  name: 'users',
  version: 1,
  from: { kind: 'domain_events', types: USER_EVENTS },
  tables: ['users', 'user_admin_roles'],
  async apply(batch, tx, mode) {
    for (const run of runsByType(batch)) {
      switch (run.type) {
        case 'user:registered':
          await tx.query(
            `insert into users (id, created_at)
             select user_id, registered_at from jsonb_to_recordset($1::jsonb) as e (user_id uuid, registered_at timestamptz)
             on conflict (id) do nothing`,
            [rowsOf(run)],
          );
          break;
        case 'user:login_connected':
          // A login finds its user by the reservation of its identity; no table shows logins yet.
          break;
        case 'user:admin_role_assigned':
          await tx.query(
            `insert into user_admin_roles (user_id, role, assigned_at)
             select user_id, role, assigned_at from jsonb_to_recordset($1::jsonb) as e (user_id uuid, role text, assigned_at timestamptz)
             on conflict (user_id, role) do nothing`,
            [lastRowsOf(run, 'user_id', 'role')],
          );
          break;
        case 'user:admin_role_removed':
          await tx.query(
            `delete from user_admin_roles r using jsonb_to_recordset($1::jsonb) as e (user_id uuid, role text)
             where r.user_id = e.user_id and r.role = e.role`,
            [rowsOf(run)],
          );
          break;
      }
    }
    await recordRevocations(
      tx,
      mode,
      batch
        .filter((event) => event.type.startsWith('user:admin_role_'))
        .map((event) => ({ user_id: String(event.data.user_id) })),
    );
    return [];
  },
});
