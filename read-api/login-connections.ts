import { z } from 'zod';
import { LoginConnection, loginConnectionsOf } from '../access/login-connections';
import { firstParty, get, query, whole } from '../access/operation';
import { loginSwitchedOff } from '../access/provider-logins';
import type { LoginProvider } from '../domain/user-logins';

/** Those of a provider that is switched off are not shown. */
export const loginConnections = query({
  name: 'loginConnections',
  // Source: spec doc2 §4.2.
  summary: 'What the caller logs in with, of the providers that are switched on',
  rest: get('/v1/users/me/login-connections'),
  pages: whole(),
  guard: [firstParty],
  input: z.object({}),
  output: LoginConnection,
  async run({ caller: { user_id } }, services) {
    const own = await loginConnectionsOf(services.db, user_id);
    const providers = [...new Set(own.map(({ provider }) => provider))];
    const off = await Promise.all(providers.map((one) => loginSwitchedOff(services, one as LoginProvider)));
    return own.filter(({ provider }) => off[providers.indexOf(provider)] === null);
  },
});
