import { z } from 'zod';
import { Account, accountOf, ACCOUNT_NOT_FOUND, nameOf } from '../../views/accounts/accounts';
import { ownershipsOf } from '../../services/accounts/ownerships';
import { actFor } from '../../app/write-path/act';
import { announceChannel, announceShop } from '../../services/connections/connection-lookup';
import { CALLER_DELETED } from '../../services/identity/deletion';
import { newEvents } from '../../app/write-path/event-ids';
import { accountCreation } from '../../access/authorization/features';
import { displayNameInput } from '../../app/name-inputs';
import {
  account as onAccount,
  command,
  conflict,
  del,
  featureDisabled,
  firstParty,
  forbidden,
  invalid,
  patch,
  permission,
  post,
} from '../../app/operation';
import { accountAllowance, PLAN_LIMIT_REACHED } from '../../access/authorization/plan-limits';
import { planMoves } from '../../services/billing/plan-changes';
import { isPublicPlan } from '../../views/billing/plans';
import { readProfile } from '../../services/identity/profiles';
import type { Services } from '../../app/services';
import { setActiveAccountAndReissueToken } from '../../services/identity/session-account';
import { load } from '../../app/write-path/aggregate-cache';
import { account, accountStream, type AccountEvent } from '../../domain/accounts/accounts';
import { connections, connectionsStream } from '../../domain/connections/connections';
import { ownership, ownershipStream } from '../../domain/accounts/ownerships';
import { DEFAULT_ROLES } from '../../domain/common/permissions';

const name = displayNameInput('name must not be empty', 'name must be 100 characters or less');
const description = z.string().trim().max(500, 'description must be 500 characters or less');
const token = z.string().nullable().describe('Access JWT for the account; null for an API key, which has no session');

const CreateAccountResult = z.object({ account: Account, token }).meta({ id: 'CreateAccountResult' });
const Left = z.object({ success: z.boolean() }).meta({ id: 'LeaveAccountResult' });
const Dissolved = z
  .object({ success: z.boolean(), token: token.describe('Access JWT without an account; null for an API key') })
  .meta({ id: 'DissolveAccountResult' });

const DISABLED = 'Account creation is currently disabled';
const MULTI_ACCOUNT = 'feature:multi_account';
const FREE = 'free';

/**
 * Creates an account with the four default roles and the creator as Owner; moves every session of the creator to it.
 * Source: spec doc1 §7.1 rule 4, extra-facts §3, rulings "one account too many".
 */
export const createAccount = command({
  name: 'createAccount',
  summary: "Creates an account of the caller's and switches their sessions to it",
  rest: post('/v1/accounts', {
    status: 201,
    location: ({ account }: z.output<typeof CreateAccountResult>) => `/v1/accounts/${account.id}`,
    answer: {
      schema: Account.extend({ token }).meta({ id: 'AccountCreated' }),
      of: ({ account, token }: z.output<typeof CreateAccountResult>) => ({ ...account, token }),
    },
  }),
  graphql: { argument: 'input' },
  guard: [firstParty],
  input: z
    .object({
      name: name.nullish().describe("Default: the user's display name"),
      description: description.nullish(),
      plan: z
        .string()
        .min(2)
        .max(40)
        .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'Invalid slug format')
        .nullish()
        .describe('Slug of the plan that is wanted; default `free`. The account is on `free` until it is paid for'),
    })
    .meta({ id: 'CreateAccountInput' }),
  output: CreateAccountResult,
  errors: {
    CREATION_DISABLED: forbidden(DISABLED, {
      rest_body: { error: DISABLED, error_code: 'account_creation_disabled' },
      graphql_code: 'ACCOUNT_CREATION_DISABLED',
    }),
    ONE_ACCOUNT_ONLY: featureDisabled(`Feature not enabled: ${MULTI_ACCOUNT}`),
    PLAN_NOT_FOUND: invalid('plan: there is no plan of this slug'),
    ...CALLER_DELETED,
    ...PLAN_LIMIT_REACHED,
  },
  async run({ input, caller, context, refuse, newId }, services) {
    const { db } = services;
    const { user_id } = caller;
    if (!(await accountCreation(db, user_id)).enabled) throw refuse('CREATION_DISABLED');
    const said = { name: input.name ?? null, description: input.description || null, plan: input.plan ?? FREE };
    if (said.plan !== FREE && !(await isPublicPlan(db, said.plan))) throw refuse('PLAN_NOT_FOUND');

    const account_id = newId('account');
    // The events carry the new account, not the caller's active one.
    const founder = { caller: { ...caller, account_id }, context };
    const act = actFor(founder, services);
    const created_at = new Date(context.now).toISOString();
    const stream = accountStream(account_id);
    const founded = account.decide(account.initial, {
      type: 'account:create',
      ...{ account_id, ...said, owner_id: user_id, membership_id: newId('membership') },
      role_ids: DEFAULT_ROLES.map(({ slug }) => newId(`role ${slug}`)),
      now: created_at,
    });
    await act(
      ownership,
      ownershipStream(user_id),
      { type: 'ownership:open', user_id, account_id, ...(await ownershipAllowance(services, user_id)) },
      { additionalWrites: () => [{ stream, expected: 'none', events: newEvents(context, stream, founded) }] },
    );
    const token = await setActiveAccountAndReissueToken({ ...founder, act }, services, { user_id }, account_id);
    await services.access.announce({ user_id });

    const found = await accountOf(db, account_id);
    if (found !== null) return { account: found, token };
    // The read model is behind.
    const profile = await readProfile(db, user_id);
    const { avatar_url = null } = profile ?? {};
    const times = { created_at, updated_at: created_at };
    const shown = { id: account_id, ...said, name: nameOf(said.name, profile), plan: FREE, owner_id: user_id };
    return { account: { ...shown, avatar_url, primary_login_connection_id: null, ...times }, token };
  },
});

/** Accounts that the user owns, and how many they may own. */
async function ownershipAllowance(services: Pick<Services, 'db' | 'events' | 'features'>, user_id: string) {
  const { max_accounts, best_account_id } = await accountAllowance(services.db, user_id);
  const several = await services.features.enabled(MULTI_ACCOUNT, best_account_id);
  return { ...(await ownershipsOf(services, user_id)), max_accounts, several };
}

export const updateAccount = command({
  name: 'updateAccount',
  summary: 'Renames an account, or changes what it says of itself',
  rest: patch('/v1/accounts/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [onAccount('id'), permission('account:edit')],
  input: z
    .object({
      id: z.uuid(),
      name: name.nullish().describe("Null: the owner's display name"),
      description: description.nullish().describe('Null takes it away'),
    })
    .refine(({ name, description }) => name !== undefined || description !== undefined, 'Nothing to change was given')
    .meta({ id: 'UpdateAccountInput' }),
  output: Account,
  errors: ACCOUNT_NOT_FOUND,
  async run({ input, caller: { account_id }, act, refuse }, { db }) {
    const { name, description } = input;
    await act(account, accountStream(account_id), {
      type: 'account:change_details',
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description: description || null }),
    });
    const found = await accountOf(db, account_id);
    if (found === null) throw refuse('ACCOUNT_NOT_FOUND');
    return found;
  },
});

/**
 * Dissolves an account: its members, keys and connections end at once, its events stay. Source: spec extra-facts §3.
 */
export const dissolveAccount = command({
  name: 'dissolveAccount',
  summary: 'Dissolves an account of the caller, with its members, keys and connections',
  rest: del('/v1/accounts/{id}', { status: 200, envelope: 'bare' }),
  guard: [firstParty, onAccount('id'), permission('account:delete')],
  input: z.object({ id: z.uuid(), confirm_name: z.string().max(200).describe("The account's name, exactly") }),
  output: Dissolved,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    NOT_THE_OWNER: forbidden('Only the owner can dissolve the account'),
    NAME_DIFFERS: invalid("confirm_name must be the account's name, exactly"),
  },
  async run({ input, caller, context, act, refuse }, services) {
    const { account_id, user_id } = caller;
    const profile = await readProfile(services.db, user_id);
    const precondition = ({ name, owner_id }: typeof account.initial) => {
      if (owner_id !== user_id) return refuse('NOT_THE_OWNER');
      return nameOf(name, profile) !== input.confirm_name && refuse('NAME_DIFFERS');
    };
    const connected = await load(services.events, connections, connectionsStream(account_id));
    const additionalWrites = (decided: readonly AccountEvent[]) => planMoves(context, services.events, decided);
    await act(
      account,
      accountStream(account_id),
      { type: 'account:dissolve', user_id },
      { precondition, additionalWrites },
    );
    await services.access.announce({ account_id });
    // Every node drops the cached owners of its channels and shops, so that their deliveries are no longer accepted.
    for (const [platform, { platform_channel_id }] of connected?.state.channels ?? [])
      await announceChannel(services.relay, platform, platform_channel_id);
    for (const shop_domain of connected?.state.shops.keys() ?? []) await announceShop(services.relay, shop_domain);
    const own = caller.credential_id;
    const token =
      caller.kind !== 'jwt' || own === null
        ? null
        : await setActiveAccountAndReissueToken({ act, caller, context }, services, { session_id: own }, null);
    return { success: true, token };
  },
});

/** Source: spec extra-facts §3. */
export const leaveAccount = command({
  name: 'leaveAccount',
  summary: "Ends the caller's own membership of an account",
  rest: post('/v1/accounts/{id}/leave', { envelope: 'bare' }),
  guard: [firstParty, onAccount('id')],
  input: z.object({ id: z.uuid() }),
  output: Left,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    MEMBER_NOT_FOUND: forbidden('This action requires membership of the account'),
    OWNER_STAYS: conflict('The owner cannot leave the account; dissolve it instead'),
  },
  async run({ caller: { account_id, user_id }, act }, { access }) {
    await act(account, accountStream(account_id), { type: 'account:remove_member', user_id });
    await access.announce({ account_id, user_id });
    return { success: true };
  },
});
