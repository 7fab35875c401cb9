import { z } from 'zod';
import { UserApiKey, userApiKeys as keysOf } from '../../views/credentials/api-keys';
import { feature, firstParty, get, permission, query, whole } from '../../app/operation';

/** The caller's own keys for the active account, newest first; all on one page. Source: spec doc2 §4.2, §4.3. */
export const userApiKeys = query({
  name: 'userApiKeys',
  // Source: spec doc2 §4.2.
  summary: "The caller's own API keys for the active account",
  rest: get('/v1/api-keys'),
  pages: whole(),
  guard: [firstParty, feature('feature:apikeys'), permission('apikeys:read')],
  input: z.object({}),
  output: UserApiKey,
  run: ({ caller }, { db }) => keysOf(db, caller),
});
