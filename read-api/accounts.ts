import { z } from 'zod';
import { Account, accountOf, AccountMembership, ACCOUNT_NOT_FOUND, accountsOf } from '../access/accounts';
import { account as onAccount, firstParty, get, permission, query, whole } from '../access/operation';

export const accounts = query({
  name: 'accounts',
  summary: 'The accounts that the caller is a member of, with their role on each',
  rest: get('/v1/accounts'),
  pages: whole(),
  guard: [firstParty],
  input: z.object({}),
  output: AccountMembership,
  run: ({ caller }, { db }) => accountsOf(db, caller.user_id),
});

export const account = query({
  name: 'account',
  // Source: spec extra-facts §3.
  summary: 'One account',
  rest: get('/v1/accounts/{id}'),
  guard: [onAccount('id'), permission('account:read')],
  input: z.object({ id: z.uuid() }),
  output: Account,
  errors: ACCOUNT_NOT_FOUND,
  async run({ caller, refuse }, { db }) {
    const found = await accountOf(db, caller.account_id);
    if (found === null) throw refuse('ACCOUNT_NOT_FOUND');
    return found;
  },
});
