import { z } from 'zod';
import { FoundUser, searchUsersByName } from '../../views/identity/user-search';
import { Member, membersOf } from '../../views/accounts/members';
import { account, get, numbered, permission, query, whole } from '../../app/operation';

export const members = query({
  name: 'members',
  // Source: spec extra-facts §4.
  summary: 'Members of an account, oldest first',
  rest: get('/v1/accounts/{id}/members'),
  pages: numbered('PaginatedMemberResult'),
  guard: [account('id'), permission('members:read')],
  input: z.object({ id: z.uuid() }),
  output: Member,
  run: ({ caller, page }, { db }) => membersOf(db, caller.account_id, page),
});

/** Source: spec extra-facts §4. */
export const searchUsers = query({
  name: 'searchUsers',
  summary: 'People who could be invited into the active account, by how their names begin; members are left out',
  rest: get('/v1/users/search'),
  per_minute: 60,
  pages: whole(),
  guard: [permission('members:create')],
  input: z.object({
    query: z
      .string()
      .trim()
      .min(3, 'query must be at least 3 characters')
      .max(100, 'query must be 100 characters or less')
      .describe('The beginning of a name, or of a name on a platform'),
    limit: z.int().min(1).max(10).nullish().describe('Default 10, at most 10'),
  }),
  output: FoundUser,
  run: ({ input, caller }, { db }) => searchUsersByName(db, caller.account_id, input.query, input.limit ?? 10),
});
