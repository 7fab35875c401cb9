import { z } from 'zod';
import { ACCOUNT_NOT_FOUND } from '../../views/accounts/accounts';
import { actFor } from '../../app/write-path/act';
import { GRANT_ERRORS, grantorOf, serviceKeyOf } from '../../access/authorization/delegation';
import { generateInviteCode, Invite, invitesOf, placeOfInvite } from '../../views/accounts/invites';
import {
  account as onAccount,
  command,
  conflict,
  del,
  firstParty,
  forbidden,
  notFound,
  permission,
  post,
} from '../../app/operation';
import { account, accountStream } from '../../domain/accounts/accounts';

/** An hour, a day, a week, thirty days. Source: spec extra-facts §4. */
const DURATIONS: readonly number[] = [3600, 86_400, 604_800, 2_592_000];
const WEEK = 604_800;

const code = z.string().min(1).max(100);
const CreateInviteResult = z
  .object({ code: z.string().describe('What lets somebody in; it is never shown again'), invite: Invite })
  .meta({ id: 'CreateInviteResult' });
const INVITE_NOT_FOUND = { INVITE_NOT_FOUND: notFound('Invite not found') };

/** Source: spec extra-facts §4, rulings "paths left open" and "roles". */
export const createInvite = command({
  name: 'createInvite',
  summary: 'Makes an invite into an account, with a role of permissions that the caller holds',
  rest: post('/v1/accounts/{id}/invites', {
    status: 201,
    location: ({ invite }: z.output<typeof CreateInviteResult>) =>
      `/v1/accounts/${invite.account_id}/invites/${invite.id}`,
    answer: {
      schema: z.object({ code: CreateInviteResult.shape.code, ...Invite.shape }).meta({ id: 'InviteCreated' }),
      of: ({ code, invite }: z.output<typeof CreateInviteResult>) => ({ code, ...invite }),
    },
  }),
  graphql: { argument: 'input' },
  guard: [onAccount('id'), permission('members:create')],
  input: z
    .object({
      id: z.uuid().describe('Of the account'),
      role_id: z.uuid(),
      duration_secs: z
        .int()
        .refine((seconds) => DURATIONS.includes(seconds), `duration_secs must be one of ${DURATIONS.join(', ')}`)
        .nullish()
        .describe(`${DURATIONS.join(', ')}, or null: never ends; default ${WEEK}`),
      max_uses: z.int().min(1).max(1000).nullish().describe('Default: 1'),
    })
    .meta({ id: 'CreateInviteInput' }),
  output: CreateInviteResult,
  errors: {
    ...ACCOUNT_NOT_FOUND,
    ...GRANT_ERRORS,
    ROLE_NOT_FOUND: notFound('Role not found'),
    ONE_OWNER: forbidden('The Owner role cannot be assigned'),
    TOO_MANY_INVITES: conflict('There are 200 open invites; delete some first'),
    // A retry after a lost answer finds an invite whose code nobody has seen, because only its hash is stored.
    CODE_NOT_SHOWN: conflict('The invite was made but its code can no longer be shown; delete it and make another', {
      shows: ['id'],
    }),
  },
  async run({ input, caller, context, act, refuse, newId }, { db }) {
    const { account_id } = caller;
    const { role_id } = input;
    const invite_id = newId('invite');
    const made = generateInviteCode();
    const { duration_secs = WEEK } = input;
    const { events, state } = await act(account, accountStream(account_id), {
      type: 'account:create_invite',
      invite_id,
      code_hash: made.hash,
      code_prefix: made.prefix,
      role_id,
      by: grantorOf(caller),
      made_with: serviceKeyOf(caller),
      max_uses: input.max_uses ?? 1,
      expires_at: duration_secs === null ? null : new Date(context.now + duration_secs * 1000).toISOString(),
    });
    const created = events.find((event) => event.type === 'account:invite_created');
    if (created?.code_hash !== made.hash) throw refuse('CODE_NOT_SHOWN', { id: invite_id });
    const { items } = await invitesOf(db, account_id, { limit: 1, offset: 0 }, invite_id);
    const { slug, name, description, color } = state.roles.get(role_id)!;
    const { code_prefix, made_by: created_by, max_uses, expires_at, created_at } = created;
    const shown = {
      ...{ id: invite_id, account_id, code_prefix, created_by, max_uses, uses: 0, expires_at, created_at },
      ...{ role: { id: role_id, slug, name, description, color }, is_expired: false, is_used_up: false },
    };
    return { code: made.code, invite: items[0] ?? shown };
  },
});

export const deleteInvite = command({
  name: 'deleteInvite',
  summary: 'Takes an invite back',
  rest: del('/v1/accounts/{id}/invites/{invite_id}'),
  guard: [onAccount('id'), permission('members:create')],
  input: z.object({ id: z.uuid(), invite_id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteInviteResult' }),
  errors: { ...ACCOUNT_NOT_FOUND, ...INVITE_NOT_FOUND },
  async run({ input: { invite_id }, caller: { account_id }, act }) {
    await act(account, accountStream(account_id), { type: 'account:delete_invite', invite_id });
    return { success: true };
  },
});

/**
 * Accepts an invite. The role must be within the current permissions of the invite's maker, not those at its creation.
 */
export const acceptInvite = command({
  name: 'acceptInvite',
  // Source: spec extra-facts §4, rulings "paths left open".
  summary: 'Makes the caller a member of the account that an invite is for; accepted again it changes nothing',
  rest: post('/v1/invites/{code}/accept', { envelope: 'bare' }),
  per_minute: 30,
  guard: [firstParty],
  input: z.object({ code }),
  output: z
    .object({
      success: z.boolean(),
      account_id: z.uuid(),
      role_id: z.uuid().describe('The role that the caller holds'),
    })
    .meta({ id: 'AcceptInviteResult' }),
  errors: {
    ...INVITE_NOT_FOUND,
    ACCOUNT_NOT_FOUND: INVITE_NOT_FOUND.INVITE_NOT_FOUND,
    INVITE_EXPIRED: conflict('This invite has expired'),
    INVITE_USED_UP: conflict('This invite has been used up'),
    INVITE_WITHDRAWN: conflict('This invite is no longer valid'),
  },
  async run({ input, caller, context, refuse, newId }, services) {
    const { user_id } = caller;
    const place = await placeOfInvite(services.db, input.code);
    if (place === null) throw refuse('INVITE_NOT_FOUND');
    const { account_id, invite_id } = place;
    // The events carry the account that the caller joins.
    const act = actFor({ caller: { ...caller, account_id }, context }, services);
    const membership_id = newId('membership');
    const { state } = await act(account, accountStream(account_id), {
      type: 'account:accept_invite',
      invite_id,
      user_id,
      membership_id,
    });
    await services.access.announce({ account_id, user_id });
    const member = state.members.get(user_id);
    // A repetition, whose member has left the account since.
    if (member === undefined) throw refuse('INVITE_USED_UP');
    return { success: true, account_id, role_id: member.role_id };
  },
});
