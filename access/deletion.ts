import { ownership, ownershipStream } from '../domain/ownerships';
import { SUPER_ADMIN } from '../domain/admin-roles';
import type { User } from '../domain/users';
import type { StreamWrite } from '../engines/event-store/port';
import { DomainError } from '../kernel/errors';
import { unauthorized } from '../kernel/operation-errors';
import { ownershipsOf } from './accounts';
import type { RequestContext } from './caller';
import { newEvents } from './event-ids';
import type { Services } from './services';
import { statesOf } from './states';
import { superAdminLeaves } from './super-admins';

/** Who calls was deleted while their request was on its way. */
export const DELETED_MEANWHILE = { USER_NOT_FOUND: unauthorized('Authentication required') };

/**
 * What is written beside the deletion of a user: they make no account any more, so that one that is made at the same
 * moment meets it, and were not the last super admin.
 * @throws DomainError `OWNS_ACCOUNTS`, `LAST_SUPER_ADMIN`
 */
export async function userLeaves(
  services: Pick<Services, 'db' | 'events'>,
  context: RequestContext,
  user_id: string,
  { admin_roles }: Pick<User, 'admin_roles'>,
): Promise<StreamWrite[]> {
  const stream = ownershipStream(user_id);
  const { state, revision } = await statesOf(services.events).load(ownership, stream);
  const { owned } = await ownershipsOf(services, user_id);
  if (owned.length > 0) throw new DomainError('OWNS_ACCOUNTS', { user_id });
  const now = new Date(context.now).toISOString();
  const events = newEvents(context, stream, ownership.decide(state, { type: 'ownership:close', user_id, now }));
  const closed = { stream, expected: revision === -1 ? ('none' as const) : revision, events };
  return admin_roles.has(SUPER_ADMIN.key)
    ? [closed, ...(await superAdminLeaves(services, context, user_id))]
    : [closed];
}
