import { adminRole, adminRoleStream, SUPER_ADMIN } from '../../domain/operators/admin-roles';
import { user, userStream } from '../../domain/identity/users';
import type { StreamWrite } from '../../engines/event-store/port';
import { DomainError } from '../../kernel/errors';
import type { RequestContext } from '../../access/authentication/caller';
import { newEvents } from '../../app/write-path/event-ids';
import type { Services } from '../../app/services';
import { load, aggregateCacheOf } from '../../app/write-path/aggregate-cache';

/**
 * Write that accompanies the removal of the super admin role from a user. All removals write to one stream, so that two
 * removals of the last two holders conflict and one decides again. Checks the other holders on their own streams,
 * because read models may be behind.
 * @throws DomainError `LAST_SUPER_ADMIN`
 */
export async function superAdminRemovalWrites(
  { db, events }: Pick<Services, 'db' | 'events'>,
  context: RequestContext,
  user_id: string,
): Promise<StreamWrite[]> {
  const stream = adminRoleStream(SUPER_ADMIN.role_id);
  const { state, revision } = await aggregateCacheOf(events).load(adminRole, stream);
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
