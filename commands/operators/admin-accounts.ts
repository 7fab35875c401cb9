import { z } from 'zod';
import { actFor } from '../../app/write-path/act';
import { ACCOUNT_NOT_FOUND } from '../../views/accounts/accounts';
import {
  AccountOverrides,
  adminAccountOf,
  AdminAccountDetail,
  overridesOf,
} from '../../views/operators/admin-accounts';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import { changedMember, Member, MEMBER_NOT_FOUND } from '../../views/accounts/members';
import { displayNameInput } from '../../app/name-inputs';
import { adminPermission, command, conflict, del, forbidden, invalid, notFound } from '../../app/operation';
import { patch, post } from '../../app/operation';
import { changePlan, planMoves } from '../../services/billing/plan-changes';
import { planOfSlug } from '../../views/billing/plans';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { customBot, customBotStream } from '../../domain/automation/custom-bots';
import { account, accountStream, type AccountEvent } from '../../domain/accounts/accounts';
import { KNOWN_FLAGS } from '../../domain/operators/feature-flags';
import { PLAN_LIMITS } from '../../domain/billing/plan-limits';
import { user, userStream } from '../../domain/identity/users';

const name = displayNameInput('name must not be empty', 'name must be 100 characters or less');
const description = z.string().trim().max(500, 'description must be 500 characters or less');

interface Request {
  caller: Caller;
  context: RequestContext;
}

/** Request of the operator on this account, so that the events carry its id. */
function onAccount({ caller, context }: Request, services: Services, account_id: string) {
  const request = { caller: { ...caller, account_id }, context };
  return { request, act: actFor(request, services) };
}

/** Source: spec extra-facts §27. */
export const adminUpdateAccount = command({
  name: 'adminUpdateAccount',
  summary: "Changes an account's name, text or plan; what is left out stays as it is",
  rest: patch('/v1/admin/accounts/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [adminPermission('accounts:edit')],
  input: z
    .object({
      id: z.uuid(),
      name: name.nullish().describe("Null: the owner's display name"),
      description: description.nullish().describe('Null takes it away'),
      plan: z.string().min(1).max(40).optional().describe("The plan's slug"),
    })
    .refine(
      ({ id: _id, ...changes }) => Object.values(changes).some((value) => value !== undefined),
      'At least one field must be given',
    )
    .meta({ id: 'AdminUpdateAccountInput' }),
  output: AdminAccountDetail,
  errors: { ...ACCOUNT_NOT_FOUND, PLAN_NOT_FOUND: notFound('Plan not found') },
  async run({ input, caller, context, refuse }, services) {
    const { id: account_id, name, description, plan } = input;
    const { db, access } = services;
    if ((await adminAccountOf(db, account_id)) === null) throw refuse('ACCOUNT_NOT_FOUND');
    const plan_id = plan === undefined ? undefined : await planOfSlug(db, plan);
    if (plan_id === null) throw refuse('PLAN_NOT_FOUND');
    const { request, act } = onAccount({ caller, context }, services, account_id);
    const details = {
      type: 'account:change_details',
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description: description || null }),
    } as const;
    // The change of plan is a second append to the same stream.
    await act(account, accountStream(account_id), details, { step: 'details' });
    if (plan_id !== undefined) await changePlan(request, services, account_id, plan_id);
    await access.announce({ account_id });
    const found = await adminAccountOf(db, account_id);
    if (found === null) throw refuse('ACCOUNT_NOT_FOUND');
    return found;
  },
});

export const adminDeleteAccount = command({
  name: 'adminDeleteAccount',
  summary: 'Dissolves an account, with its members, keys and connections',
  rest: del('/v1/admin/accounts/{id}'),
  guard: [adminPermission('accounts:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.boolean(),
  errors: ACCOUNT_NOT_FOUND,
  async run({ input: { id: account_id }, caller, context }, services) {
    const { act } = onAccount({ caller, context }, services, account_id);
    const dissolve = { type: 'account:dissolve', user_id: null } as const;
    const additionalWrites = (decided: readonly AccountEvent[]) => planMoves(context, services.events, decided);
    await act(account, accountStream(account_id), dissolve, { additionalWrites });
    await services.access.announce({ account_id });
    return true;
  },
});

const ASSIGNING = {
  ...ACCOUNT_NOT_FOUND,
  ROLE_NOT_FOUND: notFound('Role not found'),
  ONE_OWNER: forbidden('The Owner role cannot be assigned'),
};
const OfMember = z.object({ account_id: z.uuid(), user_id: z.uuid(), role_id: z.uuid() });

export const adminAddAccountMember = command({
  name: 'adminAddAccountMember',
  summary: 'Makes a user a member of an account',
  rest: post('/v1/admin/accounts/{account_id}/members', { status: 201 }),
  graphql: { argument: 'input', flat_arguments: ['account_id'] },
  guard: [adminPermission('accounts:edit')],
  input: OfMember.meta({ id: 'AdminAddAccountMemberInput' }),
  output: Member,
  errors: {
    ...ASSIGNING,
    USER_NOT_FOUND: notFound('User not found'),
    ALREADY_A_MEMBER: conflict('The user is a member already'),
    ...MEMBER_NOT_FOUND,
  },
  async run({ input: { account_id, user_id, role_id }, caller, context, newId, refuse }, services) {
    const person = await load(services.events, user, userStream(user_id));
    if (person === null || person.state.deleted) throw refuse('USER_NOT_FOUND');
    const { act } = onAccount({ caller, context }, services, account_id);
    const add = { type: 'account:add_member', membership_id: newId('membership'), user_id, role_id } as const;
    const { state } = await act(account, accountStream(account_id), add);
    return changedMember(services, state, { account_id, user_id, now: context.now });
  },
});

export const adminUpdateAccountMember = command({
  name: 'adminUpdateAccountMember',
  summary: 'Gives a member of an account another role',
  rest: patch('/v1/admin/accounts/{account_id}/members/{user_id}'),
  graphql: { argument: 'input', flat_arguments: ['account_id', 'user_id'] },
  guard: [adminPermission('accounts:edit')],
  input: OfMember.meta({ id: 'AdminUpdateAccountMemberInput' }),
  output: Member,
  errors: { ...ASSIGNING, ...MEMBER_NOT_FOUND, OWNER_KEEPS_ROLE: conflict("The owner's role cannot be changed") },
  async run({ input: { account_id, user_id, role_id }, caller, context }, services) {
    const { act } = onAccount({ caller, context }, services, account_id);
    const change = { type: 'account:change_member_role', user_id, role_id } as const;
    const { state } = await act(account, accountStream(account_id), change);
    return changedMember(services, state, { account_id, user_id, now: context.now });
  },
});

export const adminRemoveAccountMember = command({
  name: 'adminRemoveAccountMember',
  summary: "Ends a member's membership of an account",
  rest: del('/v1/admin/accounts/{account_id}/members/{user_id}'),
  guard: [adminPermission('accounts:edit')],
  input: OfMember.omit({ role_id: true }),
  output: z.boolean(),
  errors: { ...ACCOUNT_NOT_FOUND, ...MEMBER_NOT_FOUND, OWNER_STAYS: conflict('The owner cannot be removed') },
  async run({ input: { account_id, user_id }, caller, context }, services) {
    const { act } = onAccount({ caller, context }, services, account_id);
    await act(account, accountStream(account_id), { type: 'account:remove_member', user_id });
    await services.access.announce({ account_id, user_id });
    return true;
  },
});

const FeatureOverride = z
  .object({
    key: z
      .string()
      .max(100)
      .meta({ enum: KNOWN_FLAGS.map(({ key }) => key) }),
    enabled: z.boolean().nullish().describe('Null: as the plan says'),
  })
  .meta({ id: 'AccountFeatureOverrideInput' });
const LimitOverride = z
  .object({
    name: z
      .string()
      .max(100)
      .meta({ enum: Object.keys(PLAN_LIMITS) }),
    value: z
      .int()
      .min(0, 'Limit cannot be negative')
      .max(Number.MAX_SAFE_INTEGER)
      .nullish()
      .describe('Null: as the plan says'),
  })
  .meta({ id: 'AccountLimitOverrideInput' });

/** Source: spec doc1 §5.11, extra-facts §18 and §27. */
export const adminUpdateAccountOverrides = command({
  name: 'adminUpdateAccountOverrides',
  summary: 'Gives an account features and limits whatever its plan says; what is not named stays as it is',
  rest: patch('/v1/admin/accounts/{id}/overrides'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [adminPermission('accounts:overrides-edit')],
  input: z
    .object({
      id: z.uuid(),
      features: z.array(FeatureOverride).max(200).nullish(),
      limits: z.array(LimitOverride).max(100).nullish(),
      custom_bot_allowed: z
        .boolean()
        .nullish()
        .describe('Whether it may have bots of its own, besides that of Discord; null: the default, true'),
    })
    .meta({ id: 'AdminUpdateAccountOverridesInput' }),
  output: AccountOverrides,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    UNKNOWN_FLAG: invalid('Unknown feature: {flag}'),
    UNKNOWN_LIMIT: invalid('Unknown limit: {name}'),
  },
  async run({ input: { id: account_id, features, limits, custom_bot_allowed: allowed }, caller, context }, services) {
    const { act } = onAccount({ caller, context }, services, account_id);
    const stream = accountStream(account_id);
    // Validates the limits before the features are appended.
    const of_limits = Object.fromEntries((limits ?? []).map(({ name, value }) => [name, value ?? null]));
    const of_features = Object.fromEntries((features ?? []).map(({ key, enabled }) => [key, enabled ?? null]));
    const precondition = (state: typeof account.initial) => {
      const now = new Date(context.now).toISOString();
      account.decide(state, { type: 'account:set_limit_overrides', overrides: of_limits, now });
    };
    const set_features = { type: 'account:set_feature_overrides', overrides: of_features } as const;
    await act(account, stream, set_features, { step: 'features', precondition });
    const set_limits = { type: 'account:set_limit_overrides', overrides: of_limits } as const;
    await act(account, stream, set_limits, { step: 'limits' });
    if (allowed !== undefined)
      await act(customBot, customBotStream(account_id), { type: 'custom_bot:set_override', account_id, allowed });
    await services.access.announce({ account_id });
    return overridesOf(services.db, account_id);
  },
});
