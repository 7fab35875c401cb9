import { z } from 'zod';
import { adminPermission, get, numbered, permission, query, rowsOf, whole } from '../../app/operation';
import { AdminSeToken, SeToken, seTokensOf } from '../../views/connections/se-tokens';

/** Source: spec extra-facts §22. */
export const seTokens = query({
  name: 'seTokens',
  summary: "The active account's tokens of StreamElements, masked, one for each platform",
  rest: get('/v1/se-tokens'),
  pages: whole(),
  guard: [permission('se-tokens:read')],
  input: z.object({}),
  output: SeToken,
  run: ({ caller: { account_id } }, services) => seTokensOf(services, account_id),
});

/** Source: spec doc1 §5.11. */
export const adminSeTokens = query({
  name: 'adminSeTokens',
  summary: 'Which accounts have a token of StreamElements, without any part of it',
  rest: get('/v1/admin/se-tokens'),
  pages: numbered('PaginatedAdminSeTokenResult'),
  guard: [adminPermission('se-tokens:read')],
  input: z.object({ account_id: z.uuid().nullish() }),
  output: AdminSeToken,
  run: ({ input: { account_id }, page }, { db }) =>
    rowsOf(db, page, AdminSeToken, {
      from: `(select id, account_id, platform, label, created_at, saved_at as updated_at from se_tokens
              where $1::uuid is null or account_id = $1) t`,
      order: 'created_at desc, id desc',
      values: [account_id ?? null],
    }),
});
