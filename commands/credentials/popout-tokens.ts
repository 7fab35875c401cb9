import { z } from 'zod';
import { generateKey } from '../../access/authentication/keys';
import {
  command,
  conflict,
  del,
  firstParty,
  forbidden,
  invalid,
  notFound,
  patch,
  permission,
  post,
  type Refuse,
} from '../../app/operation';
import { PopoutToken, popoutTokenOf } from '../../views/credentials/popout-tokens';
import { recordOrigin } from '../../services/identity/credential-origins';
import { shownInstant } from '../../lib/time/instants';
import { popoutToken, popoutTokenStream, type PopoutToken as Token } from '../../domain/credentials/popout-tokens';
import {
  revokeBeforeAppend,
  DeleteTokenResult,
  endsLater,
  expiry,
  heldCheck,
  instantOf,
  KEY_NOT_IN_VIEW,
  requireKeyQuota,
  requireWithinOwnEnd,
  scope,
  SCOPE_ERRORS,
  scopeOf,
  SESSION_ENDED,
  TOO_MANY_KEYS,
} from './keys';

const label = z.string().trim().max(100, 'label must be 100 characters or less').nullish();

const CreatePopoutTokenInput = z
  .object({
    label,
    permissions: scope,
    user_id: z.uuid().nullish().describe('The member that it acts for; absent: who creates it'),
    expires_at: expiry,
  })
  .meta({ id: 'CreatePopoutTokenInput' });

const CreatePopoutTokenResult = z
  .object({ token: z.string().describe('The full token; it is never shown again'), popout_token: PopoutToken })
  .meta({ id: 'CreatePopoutTokenResult' });

/** REST shows the token among the record's own members, as for keys. */
const PopoutTokenCreated = z
  .object({ token: CreatePopoutTokenResult.shape.token, ...PopoutToken.shape })
  .meta({ id: 'PopoutTokenCreated' });

const TOKEN_NOT_FOUND = { TOKEN_NOT_FOUND: notFound('Popout token not found') };

/**
 * Creates a token bound to the active account and to a member of it, by default the caller. Source: spec doc1 §5.5,
 * 5.8.
 */
export const createPopoutToken = command({
  name: 'createPopoutToken',
  summary: 'Creates a token for a popout window or a browser source and shows it once',
  rest: post('/v1/tokens', {
    status: 201,
    location: ({ popout_token }: z.output<typeof CreatePopoutTokenResult>) => `/v1/tokens/${popout_token.id}`,
    answer: {
      schema: PopoutTokenCreated,
      of: ({ token, popout_token }: z.output<typeof CreatePopoutTokenResult>) => ({ token, ...popout_token }),
    },
  }),
  graphql: { argument: 'input' },
  guard: [firstParty, permission('tokens:create')],
  input: CreatePopoutTokenInput,
  output: CreatePopoutTokenResult,
  errors: {
    ...SCOPE_ERRORS,
    ...TOO_MANY_KEYS,
    ...SESSION_ENDED,
    NO_MEMBER: invalid('user_id must be a member of the account'),
    KEY_NOT_SHOWN: KEY_NOT_IN_VIEW,
  },
  async run({ input, caller, context, act, refuse, newId }, services) {
    const { db } = services;
    const { account_id, user_id: created_by } = caller;
    const { permissions, expires_at } = await scopeOf(input, caller, context, services, refuse);
    const user_id = input.user_id ?? created_by;
    if (user_id !== created_by) {
      const member = 'select 1 from account_members where account_id = $1 and user_id = $2';
      if ((await db.query(member, [account_id, user_id], 'is-member')).length === 0) throw refuse('NO_MEMBER');
    }
    const token_id = newId('popout-token');
    // Counts the active tokens that the caller made; a reactor keeps that table to end them with the membership.
    const keys = `member_tokens m where account_id = $1 and user_id = $2 and token_id <> $3
      and exists (select 1 from popout_tokens t where t.id = m.token_id and t.created_by = m.user_id)`;
    await requireKeyQuota({ db }, { keys, values: [account_id, created_by, token_id] }, refuse);
    const made_in = { credential_id: token_id, kind: 'popout_token', account_id } as const;
    if (!(await recordOrigin(db, caller, made_in))) throw refuse('SESSION_ENDED');
    const made = generateKey('popout');
    const { events } = await act(popoutToken, popoutTokenStream(token_id), {
      type: 'popout_token:create',
      token_id,
      account_id,
      user_id,
      created_by,
      token_hash: made.hash,
      token_prefix: made.prefix,
      label: input.label || null,
      permissions,
      expires_at,
    });
    const created = events.find((event) => event.type === 'popout_token:created');
    if (created?.token_hash !== made.hash) throw refuse('KEY_NOT_SHOWN', { id: token_id });
    return {
      token: made.key,
      popout_token: {
        id: token_id,
        account_id,
        user_id,
        token_prefix: created.token_prefix,
        label: created.label,
        permissions: created.permissions,
        created_at: shownInstant(created.created_at),
        expires_at: created.expires_at && shownInstant(created.expires_at),
        revoked_at: null,
      },
    };
  },
});

/**
 * Changes label or expiry. An expiry in the past stops the token at once, and may be reverted. To extend it, the caller
 * must hold the token's permissions and not expire earlier; a popout token may not extend any. Source: spec doc2 §4.2,
 * rulings "keys and what they make".
 */
export const updatePopoutToken = command({
  name: 'updatePopoutToken',
  summary: 'Changes the label or the end of a popout token; what is left out stays as it is',
  rest: patch('/v1/tokens/{id}'),
  graphql: { argument: 'input' },
  guard: [permission('tokens:edit')],
  input: z.object({ id: z.uuid(), label, expires_at: expiry }).meta({ id: 'UpdatePopoutTokenInput' }),
  output: PopoutToken,
  errors: {
    ...TOKEN_NOT_FOUND,
    TOKEN_REVOKED: conflict('The popout token was revoked'),
    PERMISSION_BEYOND_OWN: SCOPE_ERRORS.PERMISSION_BEYOND_OWN,
    EXPIRY_BEYOND_OWN: SCOPE_ERRORS.EXPIRY_BEYOND_OWN,
    OWN_TOKEN: forbidden('A popout token cannot let itself live longer'),
    OTHER_TOKEN: forbidden('A popout token cannot let another one live longer'),
  },
  async run({ input, caller, act, refuse }, services) {
    const { id, ...changes } = input;
    const row = await popoutTokenOf(services.db, caller, id);
    if (!row) throw refuse('TOKEN_NOT_FOUND');
    const expires_at = changes.expires_at === undefined ? undefined : instantOf(changes.expires_at);
    const requireHeld = await heldCheck(services.events, caller);
    const precondition = (token: Token) => {
      if (token.account_id !== caller.account_id) return refuse('TOKEN_NOT_FOUND');
      if (expires_at === undefined || !endsLater(expires_at, token.expires_at)) return;
      if (caller.kind === 'popout') return refuse(caller.credential_id === id ? 'OWN_TOKEN' : 'OTHER_TOKEN');
      requireHeld(token.permissions);
      requireWithinOwnEnd(expires_at, caller, refuse);
    };
    const { state } = await act(
      popoutToken,
      popoutTokenStream(id),
      {
        type: 'popout_token:update',
        ...(changes.label !== undefined && { label: changes.label || null }),
        ...(expires_at !== undefined && { expires_at }),
      },
      { precondition },
    );
    await services.access.announce({ account_id: caller.account_id });
    return { ...row, label: state.label, expires_at: state.expires_at && shownInstant(state.expires_at) };
  },
});

/** Revokes the token and the sessions made of it at once; the record stays, with the time. */
export const deletePopoutToken = command({
  name: 'deletePopoutToken',
  summary: 'Revokes a popout token and all sessions made of it',
  rest: del('/v1/tokens/{id}'),
  guard: [permission('tokens:delete')],
  input: z.object({ id: z.uuid() }),
  output: DeleteTokenResult,
  errors: TOKEN_NOT_FOUND,
  async run({ input: { id }, caller, act, refuse }, services) {
    const options = { precondition: own(caller, refuse), ...revokeBeforeAppend(services, id) };
    await act(popoutToken, popoutTokenStream(id), { type: 'popout_token:revoke' }, options);
    await services.access.announce({ credential_id: id });
    return { success: true };
  },
});

/** Refuses tokens of another account as not found. */
const own = (caller: { account_id: string }, refuse: Refuse<typeof TOKEN_NOT_FOUND>) => (token: Token) =>
  token.account_id !== caller.account_id && refuse('TOKEN_NOT_FOUND');
