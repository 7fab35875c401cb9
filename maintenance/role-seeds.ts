import type { Caller, RequestContext } from '../access/caller';
import { handle } from '../access/handle';
import type { Services } from '../access/services';
import { adminRole, adminRoleReservations, adminRoleStream, SUPER_ADMIN } from '../domain/admin-roles';
import { SYSTEM_USER_ROLES, userRole, userRoleReservations, userRoleStream } from '../domain/user-roles';

/**
 * Appends the roles that exist without anyone having made them, once for an installation. It bears being cut off, and
 * being done by several processes at once.
 */
export async function seedRoles(
  services: Pick<Services, 'events' | 'commit' | 'awaitShown'>,
  request: { caller: Caller; context: RequestContext },
): Promise<void> {
  const now = new Date(request.context.now).toISOString();
  await handle(request, services, {
    decider: adminRole,
    stream: adminRoleStream(SUPER_ADMIN.role_id),
    command: { type: 'admin_role:seed', now },
    reservations: adminRoleReservations,
  });
  for (const role of SYSTEM_USER_ROLES) {
    await handle(request, services, {
      decider: userRole,
      stream: userRoleStream(role.role_id),
      command: { type: 'user_role:seed', ...role, now },
      reservations: userRoleReservations,
    });
  }
}
