import { z } from 'zod';
import { LoginConnection, offeredLoginsOf } from '../../views/identity/login-connections';
import { firstParty, get, query, whole } from '../../app/operation';

/** Omits logins of disabled providers. */
export const loginConnections = query({
  name: 'loginConnections',
  // Source: spec doc2 §4.2.
  summary: 'What the caller logs in with, of the providers that are switched on',
  rest: get('/v1/users/me/login-connections'),
  pages: whole(),
  guard: [firstParty],
  input: z.object({}),
  output: LoginConnection,
  run: ({ caller: { user_id } }, services) => offeredLoginsOf(services, user_id),
});
