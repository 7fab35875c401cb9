import { v7 } from 'uuid';
import { dropAbandonedProfiles } from '../../services/identity/abandoned-profiles';
import { actFor } from '../../app/write-path/act';
import { handle } from '../../app/write-path/command-handler';
import { load } from '../../app/write-path/aggregate-cache';
import { identityHash } from '../../services/identity/identities';
import { registerUser } from '../../services/identity/registration';
import type { LoginProvider } from '../../domain/identity/login-connections';
import { user, userStream, type User } from '../../domain/identity/users';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './shared/operator';

export interface NewUser {
  display_name: string;
  /** Default: a new id. */
  user_id?: string;
  /** Login identity of this user. */
  login?: { provider: LoginProvider; provider_id: string };
}

/**
 * Creates a user and their login identity in one append; returns the existing user for a known identity or id. @throws
 * AdminError when the identity belongs to another user
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

/** Assigns or removes an admin role; returns all that the user holds. @throws AdminError */
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
