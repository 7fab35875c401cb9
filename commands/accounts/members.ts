import { z } from 'zod';
import { ACCOUNT_NOT_FOUND } from '../../views/accounts/accounts';
import { GRANT_ERRORS, grantorOf } from '../../access/authorization/delegation';
import { changedMember, Member, MEMBER_NOT_FOUND } from '../../views/accounts/members';
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
} from '../../app/operation';
import type { Services } from '../../app/services';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { account, accountStream } from '../../domain/accounts/accounts';

const member_id = z.uuid().describe('Of the membership, or of the user');

/** User of a member, named by the id of the membership or of the user. Source: spec rulings, "members in paths". */
async function userOfMember({ events }: Pick<Services, 'events'>, account_id: string, id: string): Promise<string> {
  const { state } = await aggregateCacheOf(events).load(account, accountStream(account_id));
  return state.members.findKey(({ membership_id }) => membership_id === id) ?? id;
}

/** Source: spec extra-facts §4, rulings "roles". */
export const updateMemberRole = command({
  name: 'updateMemberRole',
  summary: 'Gives a member another role, of permissions that the caller holds',
  rest: patch('/v1/accounts/{id}/members/{user_id}'),
  graphql: { argument: 'input' },
  guard: [onAccount('id'), permission('members:edit')],
  input: z.object({ id: z.uuid(), user_id: member_id, role_id: z.uuid() }).meta({ id: 'UpdateMemberRoleInput' }),
  output: Member,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...MEMBER_NOT_FOUND,
    ...GRANT_ERRORS,
    ROLE_NOT_FOUND: notFound('Role not found'),
    ONE_OWNER: forbidden('The Owner role cannot be assigned'),
    OWNER_KEEPS_ROLE: conflict("The owner's role cannot be changed"),
  },
  async run({ input: { user_id: member, role_id }, caller, context: { now }, act }, services) {
    const { account_id } = caller;
    const user_id = await userOfMember(services, account_id, member);
    const { state } = await act(account, accountStream(account_id), {
      type: 'account:change_member_role',
      user_id,
      role_id,
      by: grantorOf(caller),
    });
    return changedMember(services, state, { account_id, user_id, now });
  },
});

/**
 * Ends a membership with the member's keys, logins and invites on the account. Source: spec doc1 §5.9 rule 4, rulings
 * c13.
 */
export const removeMember = command({
  name: 'removeMember',
  // Source: spec doc2 §4.2, §4.3.
  summary: "Ends a member's membership of an account",
  rest: del('/v1/accounts/{id}/members/{user_id}'),
  guard: [firstParty, onAccount('id'), permission('members:delete')],
  input: z.object({ id: z.uuid(), user_id: member_id }),
  output: z.object({ success: z.boolean() }).meta({ id: 'RemoveMemberResult' }),
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...MEMBER_NOT_FOUND,
    OWNER_STAYS: conflict('The owner cannot be removed'),
  },
  async run({ input: { user_id: member }, caller: { account_id }, act }, services) {
    const user_id = await userOfMember(services, account_id, member);
    await act(account, accountStream(account_id), { type: 'account:remove_member', user_id });
    await services.access.announce({ account_id, user_id });
    return { success: true };
  },
});
