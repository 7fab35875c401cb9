import { z } from 'zod';
import { ACCOUNT_NOT_FOUND } from '../access/accounts';
import { GIVING_ERRORS, giverOf } from '../access/giver';
import { changedMember, Member, MEMBER_NOT_FOUND } from '../access/members';
import {
  account as onAccount,
  command,
  conflict,
  del,
  firstParty,
  forbidden,
  notFound,
  patch,
  permission,
} from '../access/operation';
import { account, accountStream } from '../domain/accounts';

/** Source: spec extra-facts §4, rulings "roles". */
export const updateMemberRole = command({
  name: 'updateMemberRole',
  summary: 'Gives a member another role, of permissions that the caller holds',
  rest: patch('/v1/accounts/{id}/members/{user_id}'),
  graphql: { argument: 'input' },
  guard: [onAccount('id'), permission('members:edit')],
  input: z.object({ id: z.uuid(), user_id: z.uuid(), role_id: z.uuid() }).meta({ id: 'UpdateMemberRoleInput' }),
  output: Member,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...MEMBER_NOT_FOUND,
    ...GIVING_ERRORS,
    ROLE_NOT_FOUND: notFound('Role not found'),
    ONE_OWNER: forbidden('The Owner role cannot be assigned'),
    OWNER_KEEPS_ROLE: conflict("The owner's role cannot be changed"),
  },
  async run({ input: { user_id, role_id }, caller, context: { now }, act }, services) {
    const { account_id } = caller;
    const { state } = await act(account, accountStream(account_id), {
      type: 'account:change_member_role',
      user_id,
      role_id,
      by: giverOf(caller),
    });
    return changedMember(services, state, { account_id, user_id, now });
  },
});

/** Ends what they act with on the account too: keys, logins, invites. Source: spec doc1 §5.9 rule 4, rulings c13. */
export const removeMember = command({
  name: 'removeMember',
  // Source: spec doc2 §4.2, §4.3.
  summary: "Ends a member's membership of an account",
  rest: del('/v1/accounts/{id}/members/{user_id}'),
  guard: [firstParty, onAccount('id'), permission('members:delete')],
  input: z.object({ id: z.uuid(), user_id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'RemoveMemberResult' }),
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...MEMBER_NOT_FOUND,
    OWNER_STAYS: conflict('The owner cannot be removed'),
  },
  async run({ input: { user_id }, caller: { account_id }, act }, { access }) {
    await act(account, accountStream(account_id), { type: 'account:remove_member', user_id });
    await access.announce({ account_id, user_id });
    return { success: true };
  },
});
