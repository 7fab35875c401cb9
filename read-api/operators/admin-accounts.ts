import { z } from 'zod';
import { ACCOUNT_NOT_FOUND } from '../../views/accounts/accounts';
import { AccountOverrides, AdminAccount, AdminAccountDetail } from '../../views/operators/admin-accounts';
import { adminAccountOf, adminAccounts as accountsOf, overridesOf } from '../../views/operators/admin-accounts';
import { Member, membersOf } from '../../views/accounts/members';
import { adminPermission, get, numbered, query } from '../../app/operation';

/** Source: spec extra-facts §27. */
export const adminAccounts = query({
  name: 'adminAccounts',
  summary: 'All accounts, the newest first',
  rest: get('/v1/admin/accounts'),
  pages: numbered('PaginatedAdminAccountResult'),
  guard: [adminPermission('accounts:read')],
  input: z.object({
    search: z.string().trim().max(200).nullish().describe("Part of a name, or of its owner's, in whatever case"),
  }),
  output: AdminAccount,
  run: ({ input, page }, { db }) => accountsOf(db, page, { search: input.search ?? '' }),
});

export const adminAccount = query({
  name: 'adminAccount',
  summary: 'One account, with the roles that its members may have',
  rest: get('/v1/admin/accounts/{id}'),
  guard: [adminPermission('accounts:read')],
  input: z.object({ id: z.uuid() }),
  output: AdminAccountDetail,
  errors: ACCOUNT_NOT_FOUND,
  async run({ input: { id }, refuse }, { db }) {
    const found = await adminAccountOf(db, id);
    if (found === null) throw refuse('ACCOUNT_NOT_FOUND');
    return found;
  },
});

export const adminAccountMembers = query({
  name: 'adminAccountMembers',
  summary: 'Members of an account, the oldest first',
  rest: get('/v1/admin/accounts/{account_id}/members'),
  pages: numbered('PaginatedAdminAccountMemberResult'),
  guard: [adminPermission('accounts:read')],
  input: z.object({ account_id: z.uuid() }),
  output: Member,
  errors: ACCOUNT_NOT_FOUND,
  async run({ input: { account_id }, page, refuse }, { db }) {
    const found = await membersOf(db, account_id, page);
    if (found.total === 0) throw refuse('ACCOUNT_NOT_FOUND');
    return found;
  },
});

export const adminAccountOverrides = query({
  name: 'adminAccountOverrides',
  summary: 'Features and limits that an account has whatever its plan says',
  rest: get('/v1/admin/accounts/{id}/overrides'),
  guard: [adminPermission('accounts:overrides-read')],
  input: z.object({ id: z.uuid() }),
  output: AccountOverrides,
  errors: ACCOUNT_NOT_FOUND,
  async run({ input: { id }, refuse }, { db }) {
    if ((await adminAccountOf(db, id)) === null) throw refuse('ACCOUNT_NOT_FOUND');
    return overridesOf(db, id);
  },
});
