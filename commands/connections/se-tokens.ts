import { z } from 'zod';
import { adminPermission, command, del, notFound, permission, post } from '../../app/operation';
import { maskedToken, SeToken, seTokensOf } from '../../views/connections/se-tokens';
import { dropSeToken, writeSeToken } from '../../services/connections/se-tokens';
import { seTokens, seTokensStream } from '../../domain/connections/se-tokens';
import { PLATFORMS } from '../../domain/common/vendors';

const Deleted = z.object({ success: z.boolean() }).meta({ id: 'SeTokenResult' });
const SE_TOKEN_NOT_FOUND = { SE_TOKEN_NOT_FOUND: notFound('Token not found') };

/** Stores an account's token for a platform; a further save replaces it under the same id. Source: extra-facts §22. */
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
    const new_id = newId('se-token');
    const save = { type: 'se_token:save', account_id, token_id: new_id, platform, label } as const;
    const written = new Set<string>();
    const { state } = await act(seTokens, seTokensStream(account_id), save, {
      // Before the append, so that readers of the event find the token; under the decided id, because a concurrent call
      // may have saved the first token, or deleted the present one together with its secret.
      async additionalWrites(events) {
        for (const { token_id } of events) {
          await writeSeToken(services, token_id, token);
          written.add(token_id);
        }
        return [];
      },
    });
    const id = state.get(platform) ?? new_id;
    for (const token_id of written) if (token_id !== id) await dropSeToken(services.db, token_id);
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
