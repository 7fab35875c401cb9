import { z } from 'zod';
import { feature, get, permission, query, whole } from '../../app/operation';
import { AccountServiceKey, accountServiceKeys as keysOf } from '../../views/credentials/service-keys';

/** All on one page, newest first. Source: spec doc2 §4.2, §4.3. */
export const accountServiceKeys = query({
  name: 'accountServiceKeys',
  summary: 'The service keys of the active account',
  rest: get('/v1/service-keys'),
  pages: whole(),
  guard: [feature('feature:apikeys'), permission('apikeys:read')],
  input: z.object({}),
  output: AccountServiceKey,
  run: ({ caller }, { db }) => keysOf(db, caller),
});
