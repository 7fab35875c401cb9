import { loginOf, type LoginProvider } from '../../domain/identity/login-connections';
import { user, userStream } from '../../domain/identity/users';
import { DomainError } from '../../kernel/errors';
import type { ProviderIdentity } from '../../vendors/login/port';
import type { Act } from '../../app/write-path/act';
import type { RequestContext } from '../../access/authentication/caller';
import { keepChannel } from '../chat/identities';
import { clientOf } from '../chat/speakers';
import { identityHash } from './identities';
import { dropLoginGrant, type LoginGrant, writeLoginGrant } from '../oauth/login-grants';
import { connectLogin, registerUser } from './registration';
import type { Services } from '../../app/services';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';

interface Acting {
  act: Act;
  context: Pick<RequestContext, 'idempotency_seed' | 'seed_since'>;
  newId(label: string): string;
}
type Needs = Pick<Services, 'db' | 'events' | 'secrets' | 'chat' | 'spendYoutube' | 'settings'>;

/** Display name of a person without any name. */
const NAMELESS = 'Unnamed';

/** Finds the user by (provider, provider id) alone, or creates one; stores the provider's data of the login. */
export async function logIn(
  acting: Acting,
  services: Needs,
  provider: LoginProvider,
  said: ProviderIdentity,
  access_token: string,
): Promise<{ user_id: string; created: boolean; login_connection_id: string }> {
  const { act, newId } = acting;
  const identity = await identityHash(services, provider, said.provider_id);
  const login = { login_connection_id: newId('login'), provider, identity };
  const { avatar_url, email } = said;
  const profile = { display_name: said.display_name ?? NAMELESS, avatar_url, email };
  const found = async () => {
    const registered = await registerUser(acting, services, { login, profile });
    // Connects the login again, which also clears its reconnect flag.
    if (!registered.created) await connectLogin(act, registered.user_id, login);
    return registered;
  };
  const { user_id, created, login_connection_id } = await found().catch((error: unknown) => {
    // The user was deleted between the two reads, so their identity is free by now.
    if (error instanceof DomainError && error.reason === 'USER_NOT_FOUND') return found();
    throw error;
  });
  const kept = login_connection_id ?? login.login_connection_id;
  await writeLoginGrant(services, { login_connection_id: kept, user_id, said, access_token });
  await keepGoogleChannel(services, provider, { login_connection_id: kept, user_id, said, access_token });
  return { user_id, created, login_connection_id: kept };
}

export async function isConnected(
  { events }: Pick<Services, 'events'>,
  user_id: string,
  login_connection_id: string,
): Promise<boolean> {
  const { state } = await aggregateCacheOf(events).load(user, userStream(user_id));
  return state.logins.has(login_connection_id);
}

/** Connects a further identity to the user. @throws Taken when it belongs to another user */
export async function linkLogin(
  { act, newId }: Acting,
  services: Needs,
  {
    user_id,
    provider,
    said,
    access_token,
    linked_with,
  }: {
    user_id: string;
    provider: LoginProvider;
    said: ProviderIdentity;
    access_token: string;
    linked_with: string | null;
  },
): Promise<string> {
  const identity = await identityHash(services, provider, said.provider_id);
  const login = { login_connection_id: newId('login'), provider, identity };
  // Before the event, so that every login has its grant.
  const grant = { user_id, said, access_token };
  const known = async () =>
    loginOf((await aggregateCacheOf(services.events).load(user, userStream(user_id))).state.logins, login);
  const own = (await known())?.login_connection_id ?? login.login_connection_id;
  await writeLoginGrant(services, { ...grant, login_connection_id: own });
  try {
    await connectLogin(act, user_id, { ...login, linked_with });
  } catch (error) {
    if ((await known()) === null) await dropLoginGrant(services.db, own);
    throw error;
  }
  const kept = (await known())?.login_connection_id ?? own;
  if (kept !== own) {
    await writeLoginGrant(services, { ...grant, login_connection_id: kept });
    await dropLoginGrant(services.db, own);
  }
  await keepGoogleChannel(services, provider, { ...grant, login_connection_id: kept });
  return kept;
}

/** A login with Google that may read YouTube names its channel. */
async function keepGoogleChannel(services: Needs, provider: LoginProvider, login: LoginGrant): Promise<void> {
  const { said, access_token: token } = login;
  if (provider !== 'google' || !said.scopes.some((scope) => scope.includes('/auth/youtube'))) return;
  const client_id = said.client_id ?? clientOf(services.settings, 'youtube');
  await keepChannel(services, login, { user_id: said.provider_id, token, client_id });
}
