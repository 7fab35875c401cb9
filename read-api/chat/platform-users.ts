import { z } from 'zod';
import { feature, get, permission, query, whole } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';
import { PlatformUserSearchResult, searchPeople } from '../../views/chat/platform-users';

const DEFAULT_ROWS = 10;
const MAX_ROWS = 25;
const SHORTEST_QUERY = 2;

/** People in the account's chats, by a part of their names. */
export const searchPlatformUsers = query({
  name: 'searchPlatformUsers',
  // Source: spec doc1 §8, doc2 §4.2 and §4.3.
  summary: "People of the account's chats by a part of their names, last seen first",
  rest: get('/v1/chat/users/search', { aliases: { q: 'query', platform: 'platforms' } }),
  pages: whole(),
  guard: [feature('feature:multichat'), permission('chat:userinfo')],
  input: z.object({
    query: z.string().max(200).describe('Part of a login or display name; shorter than 2 characters finds nobody'),
    platforms: z.array(z.enum(PLATFORMS)).max(10).nullish().describe('Default: all'),
    limit: z.int().min(1).nullish().describe(`Default ${DEFAULT_ROWS}; more than ${MAX_ROWS} are ${MAX_ROWS}`),
  }),
  output: PlatformUserSearchResult,
  async run({ input, caller }, { db }) {
    const part = input.query.trim();
    if ([...part].length < SHORTEST_QUERY) return [];
    const platforms = input.platforms?.length ? input.platforms : PLATFORMS;
    const limit = Math.min(input.limit ?? DEFAULT_ROWS, MAX_ROWS);
    return searchPeople(db, { account_id: caller.account_id, part, platforms, limit });
  },
});
