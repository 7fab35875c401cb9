import { ownership, ownershipStream } from '../../domain/accounts/ownerships';
import { SUPER_ADMIN } from '../../domain/operators/admin-roles';
import type { User } from '../../domain/identity/users';
import type { StreamWrite } from '../../engines/event-store/port';
import { DomainError } from '../../kernel/errors';
import { unauthorized } from '../../kernel/operations/errors';
import { ownershipsOf } from '../accounts/ownerships';
import type { RequestContext } from '../../access/authentication/caller';
import { newEvents } from '../../app/write-path/event-ids';
import type { Services } from '../../app/services';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { superAdminRemovalWrites } from './super-admins';

/** Answer to a caller whose user was deleted during the request. */
export const CALLER_DELETED = { USER_NOT_FOUND: unauthorized('Authentication required') };

/**
 * Writes of a user's deletion besides its own event: closes the user's ownership stream, so that a concurrent creation
 * of an account conflicts with it, and releases the super admin role.
 */
export async function userDeletionWrites(
  services: Pick<Services, 'db' | 'events'>,
  context: RequestContext,
  user_id: string,
  { admin_roles }: Pick<User, 'admin_roles'>,
): Promise<StreamWrite[]> {
  const stream = ownershipStream(user_id);
  const { state, revision } = await aggregateCacheOf(services.events).load(ownership, stream);
  const { owned } = await ownershipsOf(services, user_id);
  if (owned.length > 0) throw new DomainError('OWNS_ACCOUNTS', { user_id });
  const now = new Date(context.now).toISOString();
  const events = newEvents(context, stream, ownership.decide(state, { type: 'ownership:close', user_id, now }));
  const closed = { stream, expected: revision === -1 ? ('none' as const) : revision, events };
  return admin_roles.has(SUPER_ADMIN.key)
    ? [closed, ...(await superAdminRemovalWrites(services, context, user_id))]
    : [closed];
}
