import { z } from 'zod';
import { Member, membersOf } from '../access/members';
import { account, get, numbered, permission, query } from '../access/operation';

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
