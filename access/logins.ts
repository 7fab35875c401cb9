import { loginOf, type LoginProvider } from '../domain/login-connections';
import { user, userStream } from '../domain/users';
import { DomainError } from '../kernel/errors';
import type { ProviderIdentity } from '../vendors/login/port';
import type { Act } from './act';
import type { RequestContext } from './caller';
import { identityHash } from './identities';
import { dropLoginGrant, writeLoginGrant } from './login-grants';
import { connectLogin, registerUser } from './registration';
import type { Services } from './services';
import { statesOf } from './states';

interface Acting {
  act: Act;
  context: Pick<RequestContext, 'idempotency_seed'>;
  newId(label: string): string;
}
type Needs = Pick<Services, 'db' | 'events' | 'secrets'>;

/** What a person without a name anywhere is called. */
const NAMELESS = 'Unnamed';

/** The user who logs in by what the provider has said: found by (provider, provider id) alone, or made. */
export async function logIn(
  acting: Acting,
  services: Needs,
  provider: LoginProvider,
  said: ProviderIdentity,
  access_token: string,
): Promise<{ user_id: string; created: boolean }> {
  const { act, newId } = acting;
  const identity = await identityHash(services, provider, said.provider_id);
  const login = { login_connection_id: newId('login'), provider, identity };
  const { avatar_url, email } = said;
  const profile = { display_name: said.display_name ?? NAMELESS, avatar_url, email };
  const found = async () => {
    const registered = await registerUser(acting, services, { login, profile });
    // What made the provider's tokens useless is over.
    if (!registered.created) await connectLogin(act, registered.user_id, login);
    return registered;
  };
  const { user_id, created, login_connection_id } = await found().catch((error: unknown) => {
    // Deleted between the two looks: their identity is free by now.
    if (error instanceof DomainError && error.reason === 'USER_NOT_FOUND') return found();
    throw error;
  });
  const kept = login_connection_id ?? login.login_connection_id;
  await writeLoginGrant(services, { login_connection_id: kept, user_id, said, access_token });
  return { user_id, created };
}

/** Lets a further identity log in as the user. @throws Taken when it logs in as somebody else */
export async function linkLogin(
  { act, newId }: Acting,
  services: Needs,
  {
    user_id,
    provider,
    said,
    access_token,
  }: { user_id: string; provider: LoginProvider; said: ProviderIdentity; access_token: string },
): Promise<string> {
  const identity = await identityHash(services, provider, said.provider_id);
  const login = { login_connection_id: newId('login'), provider, identity };
  // Before the event, so that no login is ever without.
  const grant = { user_id, said, access_token };
  const known = async () =>
    loginOf((await statesOf(services.events).load(user, userStream(user_id))).state.logins, login);
  const own = (await known())?.login_connection_id ?? login.login_connection_id;
  await writeLoginGrant(services, { ...grant, login_connection_id: own });
  try {
    await connectLogin(act, user_id, login);
  } catch (error) {
    if ((await known()) === null) await dropLoginGrant(services.db, own);
    throw error;
  }
  const kept = (await known())?.login_connection_id ?? own;
  if (kept !== own) {
    await writeLoginGrant(services, { ...grant, login_connection_id: kept });
    await dropLoginGrant(services.db, own);
  }
  return kept;
}
