import { z } from 'zod';
import { CALLER_DELETED } from '../../services/identity/deletion';
import { findActiveSession } from '../../services/identity/active-sessions';
import { LoginConnection, loginConnectionsOf } from '../../views/identity/login-connections';
import { linkLogin } from '../../services/identity/logins';
import { command, conflict, del, firstParty, forbidden, notFound, post, put } from '../../app/operation';
import { loginBehind } from '../../services/identity/credential-origins';
import { endRemovedLogins, endsOfLogin } from '../../services/identity/session-revocation';
import { ExchangeTokenInput, identify, providerErrors } from '../../services/identity/provider-logins';
import { loginReservations } from '../../domain/identity/login-connections';
import { user, userStream } from '../../domain/identity/users';

const LogoutResult = z.object({ success: z.boolean() }).meta({ id: 'LogoutResult' });
/** A stolen access token, good for 15 minutes, must not become a login. Source: spec rulings, "linking a login". */
const FRESH_MS = 10 * 60_000;
const LOGIN_NOT_FOUND = notFound('Login connection not found');

export const linkLoginConnection = command({
  name: 'linkLoginConnection',
  // Source: spec doc2 §4.2 Auth.
  summary: "Lets a further provider account log in as the caller, by that provider's access token",
  rest: post('/v1/auth/link', {
    status: 201,
    location: ({ id }: z.output<typeof LoginConnection>) => `/v1/login-connections/${id}`,
  }),
  graphql: { argument: 'input' },
  guard: [firstParty],
  input: ExchangeTokenInput,
  output: LoginConnection,
  errors: {
    ...CALLER_DELETED,
    ...providerErrors,
    NO_SESSION: forbidden('This action requires a logged-in user'),
    OLD_SESSION: forbidden('Log in again first: a login can be added in the first 10 minutes of a session'),
    TAKEN: conflict('This provider account logs in as another user'),
  },
  async run({ input, caller, context, act, newId, refuse }, services) {
    // An API key must not obtain a login.
    if (caller.kind !== 'jwt') throw refuse('NO_SESSION');
    const { user_id, credential_id } = caller;
    const session = credential_id === null ? null : await findActiveSession(services.db, credential_id, context.now);
    if (session === null || context.now - session.created_at > FRESH_MS) throw refuse('OLD_SESSION');
    const { provider, said } = await identify(services, input, refuse);
    const linked_with = await loginBehind(services.db, caller);
    const linked = { user_id, provider, said, access_token: input.access_token, linked_with };
    const id = await linkLogin({ act, context, newId }, services, linked);
    const [known] = await loginConnectionsOf(services.db, user_id, id);
    // The read model is behind: the answer uses the provider's data of this call.
    return (
      known ?? {
        id,
        provider,
        provider_account_id: said.provider_id,
        username: said.username,
        display_name: said.display_name,
        avatar_url: said.avatar_url,
        scopes: [...said.scopes],
        token_expires_at: said.expires_at === null ? null : new Date(said.expires_at).toISOString(),
        reconnect_required: false,
        connected_at: new Date(context.now).toISOString(),
      }
    );
  },
});

export const disconnectLoginConnection = command({
  name: 'disconnectLoginConnection',
  // Source: spec doc2 §4.2, §4.3.
  summary: "Takes one of the caller's own logins away, but the last one, and ends its sessions and their keys",
  rest: del('/v1/login-connections/{login_connection_id}'),
  guard: [firstParty],
  input: z.object({ login_connection_id: z.uuid() }),
  output: LogoutResult,
  errors: {
    ...CALLER_DELETED,
    LOGIN_NOT_FOUND,
    LAST_LOGIN: conflict('The last login connection cannot be removed'),
    PRIMARY_LOGIN: conflict('An account is shown with this login connection: choose another one for it first'),
    RECENT_LOGIN: forbidden('A login that was linked within the last 24 hours cannot remove an older one'),
  },
  async run({ input: { login_connection_id }, caller, act, refuse }, services) {
    const { user_id, kind, credential_id } = caller;
    const removed_with = await loginBehind(services.db, caller);
    const session_id = kind === 'jwt' ? credential_id : null;
    const [primary] = await services.db.query(
      `select 1 from accounts a join login_connections c on c.id = a.primary_login_connection_id
       where a.primary_login_connection_id = $1 and c.user_id = $2 limit 1`,
      [login_connection_id, user_id],
      'login-primary',
    );
    const known = await endsOfLogin(services.db, { user_id, login_connection_id, session_id });
    const { events } = await act(
      user,
      userStream(user_id),
      { type: 'user:disconnect_login', login_connection_id, removed_with, session_id },
      {
        precondition: ({ logins }) =>
          primary !== undefined && logins.has(login_connection_id) && refuse('PRIMARY_LOGIN'),
        reservations: loginReservations,
      },
    );
    await endRemovedLogins(act, services, events, known);
    return { success: true };
  },
});

export const clearLoginConnectionReconnectFlag = command({
  name: 'clearLoginConnectionReconnectFlag',
  // Source: spec doc2 §4.2.
  summary: "Clears the reconnect prompt of one of the caller's own logins",
  rest: put('/v1/login-connections/{id}/reconnect-flag', { envelope: 'bare' }),
  guard: [firstParty],
  input: z.object({ id: z.uuid() }),
  output: LogoutResult,
  errors: { ...CALLER_DELETED, LOGIN_NOT_FOUND },
  async run({ input: { id }, caller: { user_id }, act }) {
    await act(user, userStream(user_id), { type: 'user:clear_login_reconnect', login_connection_id: id });
    return { success: true };
  },
});
