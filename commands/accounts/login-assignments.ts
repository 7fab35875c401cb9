import { z } from 'zod';
import { Account, accountOf, ACCOUNT_NOT_FOUND } from '../../views/accounts/accounts';
import type { Caller } from '../../access/authentication/caller';
import { hasPermission } from '../../access/authorization/permission-check';
import { ASSIGNMENT_FIELDS, LoginAssignment, loginAssignmentsOf } from '../../views/accounts/login-assignments';
import { MEMBER_NOT_FOUND } from '../../views/accounts/members';
import {
  badRequest,
  command,
  conflict,
  del,
  firstParty,
  forbidden,
  invalid,
  notFound,
  post,
  put,
} from '../../app/operation';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { account, accountStream } from '../../domain/accounts/accounts';
import { LOGIN_PROVIDERS, platformOf, type LoginProvider } from '../../domain/identity/login-connections';
import { user, userStream } from '../../domain/identity/users';

/** Accepts a platform's slug or a login provider's own name. */
const provider = z
  .enum([...new Set([...LOGIN_PROVIDERS.map(platformOf), ...LOGIN_PROVIDERS])])
  .transform((name) => platformOf(name as LoginProvider));

const errors = {
  ...ACCOUNT_NOT_FOUND,
  NO_ACCOUNT: badRequest('An account is required: switch to one first'),
  LOGIN_NOT_FOUND: notFound('Login connection not found'),
};
const PRIMARY_LOGIN = conflict('The account is shown with this login connection: choose another one for it first');

/** Platform of a user's login, from the user's own stream; null when the login is not theirs. */
async function platformOfLogin({ events }: Pick<Services, 'events'>, user_id: string, login_connection_id: string) {
  const known = await load(events, user, userStream(user_id));
  const login = known?.state.logins.get(login_connection_id);
  return login === undefined ? null : platformOf(login.provider);
}

/** Whether the caller may act for this user; for themselves always. */
const mayFor = (caller: Caller, user_id: string, permission: string): boolean =>
  user_id === caller.user_id || hasPermission(caller, caller.permissions, permission);

/** Source: spec doc2 §2.9, §4.2, §4.3. */
export const assignLoginConnection = command({
  name: 'assignLoginConnection',
  summary: 'Lets the caller, or another member, act with one of their logins on the active account',
  rest: post('/v1/accounts/login-assignments', {
    status: 201,
    location: ({ provider: of, user_id }: z.output<typeof LoginAssignment>) =>
      `/v1/accounts/login-assignments/${of}?user_id=${user_id}`,
  }),
  graphql: ASSIGNMENT_FIELDS,
  guard: [firstParty],
  input: z.object({
    login_connection_id: z.uuid(),
    provider,
    user_id: z.uuid().nullish().describe('Default: the caller'),
  }),
  output: LoginAssignment,
  errors: {
    ...errors,
    PRIMARY_LOGIN,
    FOR_ANOTHER: forbidden('Missing permission: login-assignments:create'),
    ...MEMBER_NOT_FOUND,
    OTHER_PROVIDER: invalid('provider: the login connection is of another provider'),
  },
  async run({ input, caller, act, refuse, newId }, services) {
    const { account_id } = caller;
    if (account_id === null) throw refuse('NO_ACCOUNT');
    const { login_connection_id, provider } = input;
    const user_id = input.user_id ?? caller.user_id;
    if (!mayFor(caller, user_id, 'login-assignments:create')) throw refuse('FOR_ANOTHER');
    const platform = await platformOfLogin(services, user_id, login_connection_id);
    // Checks membership first, so that a caller outside the account does not learn whether a login exists.
    const precondition = ({ members }: typeof account.initial) => {
      if (!members.has(user_id)) return refuse('MEMBER_NOT_FOUND');
      if (platform === null) return refuse('LOGIN_NOT_FOUND');
      return platform !== provider && refuse('OTHER_PROVIDER');
    };
    const assignment_id = newId('login assignment');
    const assign = { type: 'account:assign_login', assignment_id, user_id, login_connection_id, provider } as const;
    const { events } = await act(account, accountStream(account_id), assign, { precondition });
    const made = events.find((event) => event.type === 'account:login_assigned');
    if (made !== undefined)
      return {
        id: made.assignment_id,
        account_id,
        user_id,
        login_connection_id,
        provider,
        assigned_at: made.assigned_at,
      };
    const present = await loginAssignmentsOf(services.db, account_id, user_id);
    const found = present.find((one) => one.provider === provider);
    if (found === undefined) throw refuse('LOGIN_NOT_FOUND');
    return found;
  },
});

/** Source: spec doc2 §4.2, §4.3. */
export const removeLoginAssignment = command({
  name: 'removeLoginAssignment',
  summary: 'Ends that the caller, or another member, acts with a login on the active account',
  rest: del('/v1/accounts/login-assignments/{provider}'),
  guard: [firstParty],
  input: z.object({ provider, user_id: z.uuid().nullish().describe('Default: the caller') }),
  output: z.boolean(),
  errors: {
    ...errors,
    PRIMARY_LOGIN,
    FOR_ANOTHER: forbidden('Missing permission: login-assignments:delete'),
    ASSIGNMENT_NOT_FOUND: notFound('Login assignment not found'),
  },
  async run({ input: { provider, user_id: named }, caller, act, refuse }) {
    const { account_id } = caller;
    if (account_id === null) throw refuse('NO_ACCOUNT');
    const user_id = named ?? caller.user_id;
    if (!mayFor(caller, user_id, 'login-assignments:delete')) throw refuse('FOR_ANOTHER');
    await act(account, accountStream(account_id), { type: 'account:unassign_login', user_id, provider });
    return true;
  },
});

/** Source: spec extra-facts §3. */
export const setPrimaryLoginConnection = command({
  name: 'setPrimaryLoginConnection',
  summary: "Says which of the owner's logins supplies the picture of the active account",
  rest: put('/v1/accounts/primary-connection'),
  guard: [firstParty],
  input: z.object({ login_connection_id: z.uuid().nullable().describe("Null: the owner's picture") }),
  output: Account,
  errors: { ...errors, NOT_THE_OWNER: forbidden('Only the owner can change the primary login connection') },
  async run({ input: { login_connection_id }, caller, act, refuse }, services) {
    const { account_id, user_id } = caller;
    if (account_id === null) throw refuse('NO_ACCOUNT');
    const theirs = login_connection_id === null || (await platformOfLogin(services, user_id, login_connection_id));
    const precondition = ({ owner_id }: typeof account.initial) => {
      if (owner_id !== user_id) return refuse('NOT_THE_OWNER');
      return theirs === null && refuse('LOGIN_NOT_FOUND');
    };
    const set = { type: 'account:set_primary_login', login_connection_id, user_id } as const;
    await act(account, accountStream(account_id), set, { precondition });
    const found = await accountOf(services.db, account_id);
    if (found === null) throw refuse('ACCOUNT_NOT_FOUND');
    return found;
  },
});
