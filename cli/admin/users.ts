import { v7 } from 'uuid';
import { dropAbandonedProfiles } from '../../access/abandoned-profiles';
import { actFor } from '../../access/act';
import { handle } from '../../access/handle';
import { load } from '../../access/states';
import { identityHash } from '../../access/identities';
import { registerUser } from '../../access/registration';
import type { LoginProvider } from '../../domain/login-connections';
import { user, userStream, type User } from '../../domain/users';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './operator';

export interface NewUser {
  display_name: string;
  /** Absent: a new one. */
  user_id?: string;
  /** Who logs in as this user. */
  login?: { provider: LoginProvider; provider_id: string };
}

/**
 * Makes a user, with the identity that will log in, in one append. Asked again for the same identity, or under the same
 * id, it answers the user that is there. @throws AdminError when the identity logs in as another user
 */
export async function createUser(
  services: AdminServices,
  { display_name, user_id: wanted, login }: NewUser,
): Promise<{ user_id: string; created: boolean }> {
  await dropAbandonedProfiles(services);
  const identity = login && (await identityHash(services, login.provider, login.provider_id));
  const operator = asOperator(OPERATOR);
  const acting = { act: actFor(operator, services), context: operator.context };
  const made = await registerUser(acting, services, {
    user_id: wanted,
    login: login && { login_connection_id: v7(), provider: login.provider, identity: identity! },
    profile: { display_name, avatar_url: null, email: null },
  });
  if (wanted !== undefined && wanted !== made.user_id)
    throw new AdminError(`${login!.provider} ${login!.provider_id} logs in as user ${made.user_id} already`);
  return { user_id: made.user_id, created: made.created };
}

/** @throws AdminError */
export async function requireUser(services: Pick<AdminServices, 'events'>, user_id: string): Promise<User> {
  const found = await load(services.events, user, userStream(user_id));
  if (found === null || found.state.deleted) throw new AdminError(`there is no user ${user_id}`);
  return found.state;
}

/** Gives a user an admin role, or takes it; returns the roles that they hold then. @throws AdminError */
export async function setAdminRole(
  services: AdminServices,
  user_id: string,
  role: string,
  held: boolean,
): Promise<string[]> {
  await requireUser(services, user_id);
  const { state } = await handle(asOperator(OPERATOR), services, {
    decider: user,
    stream: userStream(user_id),
    command: { type: held ? 'user:assign_admin_role' : 'user:remove_admin_role', role, now: nowText() },
  });
  return [...state.admin_roles].sort();
}
