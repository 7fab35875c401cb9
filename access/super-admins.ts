import { adminRole, adminRoleStream, SUPER_ADMIN } from '../domain/admin-roles';
import { user, userStream } from '../domain/users';
import type { StreamWrite } from '../engines/event-store/port';
import { DomainError } from '../kernel/errors';
import type { RequestContext } from './caller';
import { newEvents } from './event-ids';
import type { Services } from './services';
import { load, statesOf } from './states';

/**
 * What is written beside the event that takes the super admin role from a user. It goes into one stream for all, so
 * that of two who take it from the last two at once one decides again. Who else holds the role is asked of the users'
 * own streams: read models may be behind.
 * @throws DomainError `LAST_SUPER_ADMIN`
 */
export async function superAdminLeaves(
  { db, events }: Pick<Services, 'db' | 'events'>,
  context: RequestContext,
  user_id: string,
): Promise<StreamWrite[]> {
  const stream = adminRoleStream(SUPER_ADMIN.role_id);
  const { state, revision } = await statesOf(events).load(adminRole, stream);
  const others = await db.query<{ user_id: string }>(
    'select user_id from user_admin_roles where role = $1 and user_id <> $2 order by assigned_at, user_id',
    [SUPER_ADMIN.key, user_id],
    'super-admins',
  );
  for (const other of others) {
    const found = await load(events, user, userStream(other.user_id));
    if (!found?.state.admin_roles.has(SUPER_ADMIN.key)) continue;
    const now = new Date(context.now).toISOString();
    const left = adminRole.decide(state, { type: 'admin_role:note_leaver', user_id, now });
    return [{ stream, expected: revision, events: newEvents(context, `${stream}\n${user_id}`, left) }];
  }
  throw new DomainError('LAST_SUPER_ADMIN');
}
