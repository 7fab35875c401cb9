import { z } from 'zod';
import { adminPermission, command, del, notFound, permission, post } from '../access/operation';
import { dropSeToken, maskedToken, SeToken, seTokensOf, writeSeToken } from '../access/se-tokens';
import { statesOf } from '../access/states';
import { seTokens, seTokensStream } from '../domain/se-tokens';
import { PLATFORMS } from '../domain/vendors';

const Deleted = z.object({ success: z.boolean() }).meta({ id: 'SeTokenResult' });
const SE_TOKEN_NOT_FOUND = { SE_TOKEN_NOT_FOUND: notFound('Token not found') };

/** One of an account for each platform: saved again it is another one under the same id. Source: extra-facts §22. */
export const saveSeToken = command({
  name: 'saveSeToken',
  summary: 'Keeps a token of StreamElements, by which tips on a platform are read, over the one before',
  rest: post('/v1/se-tokens', { status: 201, location: ({ id }: z.output<typeof SeToken>) => `/v1/se-tokens/${id}` }),
  graphql: { argument: 'input' },
  guard: [permission('se-tokens:create')],
  input: z.object({
    platform: z.enum(PLATFORMS),
    token: z
      .string()
      .trim()
      .regex(/^[\x21-\x7e]{1,4096}$/, 'token must be a token of StreamElements')
      .describe('Never shown again but masked'),
    label: z.string().trim().max(100, 'label must be 100 characters or less').default(''),
  }),
  output: SeToken,
  async run({ input, caller: { account_id }, context, act, newId }, services) {
    const { platform, token, label } = input;
    const stream = seTokensStream(account_id);
    const { state } = await statesOf(services.events).load(seTokens, stream);
    const token_id = state.get(platform) ?? newId('se-token');
    // Before the event, so that whoever is shown of the token finds it.
    await writeSeToken(services, token_id, token);
    const save = { type: 'se_token:save', account_id, token_id, platform, label } as const;
    const { state: after } = await act(seTokens, stream, save);
    const id = after.get(platform) ?? token_id;
    if (id !== token_id) {
      // Another call has saved the account's first token at the same moment: its id counts.
      await writeSeToken(services, id, token);
      await dropSeToken(services.db, token_id);
    }
    const [saved] = await seTokensOf(services, account_id, id);
    const now = new Date(context.now).toISOString();
    const shown = { id, platform, label, masked_token: maskedToken(token), refused: false };
    return saved ?? { ...shown, created_at: now, updated_at: now };
  },
});

/** Source: spec extra-facts §22. */
export const deleteSeToken = command({
  name: 'deleteSeToken',
  summary: 'Deletes a token of StreamElements: tips on its platform are read no longer',
  rest: del('/v1/se-tokens/{id}'),
  guard: [permission('se-tokens:delete')],
  input: z.object({ id: z.uuid() }),
  output: Deleted,
  errors: SE_TOKEN_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, act }, { db }) {
    await act(seTokens, seTokensStream(account_id), { type: 'se_token:delete', account_id, token_id: id });
    await dropSeToken(db, id);
    return { success: true };
  },
});

/** Source: spec doc1 §5.11, extra-facts §27. */
export const adminDeleteSeToken = command({
  name: 'adminDeleteSeToken',
  summary: "Deletes an account's token of StreamElements",
  rest: del('/v1/admin/accounts/{account_id}/se-tokens/{id}'),
  guard: [adminPermission('se-tokens:delete')],
  input: z.object({ account_id: z.uuid(), id: z.uuid() }),
  output: Deleted,
  errors: SE_TOKEN_NOT_FOUND,
  async run({ input: { account_id, id }, act }, { db }) {
    await act(seTokens, seTokensStream(account_id), { type: 'se_token:delete', account_id, token_id: id });
    await dropSeToken(db, id);
    return { success: true };
  },
});
