import { z } from 'zod';
import { UserApiKey, userApiKeys as keysOf } from '../access/api-keys';
import { feature, firstParty, permission } from '../access/guards';
import { query } from '../access/operation';
import { list } from '../kernel/routes';

/** The caller's own keys for the active account, newest first; all on one page. Source: spec doc2 §4.2, §4.3. */
export const userApiKeys = query({
  name: 'userApiKeys',
  // Source: spec doc2 §4.2.
  summary: "The caller's own API keys for the active account",
  rest: list('/v1/api-keys'),
  guard: [firstParty, feature('feature:apikeys'), permission('apikeys:read')],
  input: z.object({}),
  output: UserApiKey,
  async run({ caller }, { db }) {
    const items = await keysOf(db, caller);
    return { items, total: items.length, page: 1, limit: Math.max(1, items.length) };
  },
});
