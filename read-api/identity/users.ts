import { z } from 'zod';
import { firstParty, get, query } from '../../app/operation';
import { Me, meOf } from '../../views/identity/users';

/** Source: spec doc2 §2.3, §4.2. */
export const me = query({
  name: 'me',
  summary: "The caller's own person: accounts, permissions, logins and features",
  rest: get('/v1/users/me'),
  guard: [firstParty],
  input: z.object({}),
  output: Me,
  run: ({ caller }, services) => meOf(services, caller),
});
