import type { Caller, RequestContext } from '../../access/authentication/caller';
import { handle } from '../../app/write-path/command-handler';
import type { Services } from '../../app/services';
import { adminRole, adminRoleReservations, adminRoleStream, SUPER_ADMIN } from '../../domain/operators/admin-roles';
import { SYSTEM_USER_ROLES, userRole, userRoleReservations, userRoleStream } from '../../domain/operators/user-roles';

/**
 * Appends the built-in roles once per installation. Repeatable after an interruption and safe in several processes at
 * once.
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
