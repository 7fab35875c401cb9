import { z } from 'zod';
import { hasPermission } from '../../access/authorization/permission-check';
import { ASSIGNMENT_FIELDS, LoginAssignment, loginAssignmentsOf } from '../../views/accounts/login-assignments';
import { badRequest, firstParty, forbidden, get, query, whole } from '../../app/operation';

/** Source: spec doc2 §2.9, §4.2, §4.3. */
export const accountLoginAssignments = query({
  name: 'accountLoginAssignments',
  summary: 'The logins that the caller, or another member, acts with on the active account',
  rest: get('/v1/accounts/login-assignments'),
  graphql: ASSIGNMENT_FIELDS,
  pages: whole(),
  guard: [firstParty],
  input: z.object({ user_id: z.uuid().nullish().describe('Default: the caller') }),
  output: LoginAssignment,
  errors: {
    NO_ACCOUNT: badRequest('An account is required: switch to one first'),
    OF_ANOTHER: forbidden('Missing permission: login-assignments:read'),
  },
  async run({ input, caller, refuse }, { db }) {
    const { account_id } = caller;
    if (account_id === null) throw refuse('NO_ACCOUNT');
    const user_id = input.user_id ?? caller.user_id;
    if (user_id !== caller.user_id && !hasPermission(caller, caller.permissions, 'login-assignments:read'))
      throw refuse('OF_ANOTHER');
    return loginAssignmentsOf(db, account_id, user_id);
  },
});
