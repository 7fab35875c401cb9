import { z } from 'zod';
import { OauthClient } from '../../views/oauth-provider/oauth-clients';
import { readClient } from '../../services/oauth/oauth-clients';
import { adminPermission, get, notFound, numbered, permission, query, rowsOf } from '../../app/operation';

const guard = [adminPermission('oauth-clients:read')] as const;

/** Newest first. Source: spec extra-facts §27. */
export const oauthClients = query({
  name: 'oauthClients',
  // Source: spec extra-facts §27.
  summary: 'The OAuth clients of this service',
  rest: get('/v1/admin/oauth-clients'),
  pages: numbered('PaginatedOauthClientResult'),
  guard,
  input: z.object({ search: z.string().trim().max(100).nullish().describe('Part of the name, or a whole client_id') }),
  output: OauthClient,
  run({ input, page }, { db }) {
    const matching = `oauth_clients where $1 = '' or strpos(lower(name), $1) > 0 or client_id::text = $1`;
    const values = [input.search?.toLowerCase() ?? ''];
    return rowsOf(db, page, OauthClient, { from: matching, order: 'created_at desc, client_id desc', values });
  },
});

export const oauthClientById = query({
  name: 'oauthClient',
  // Source: spec extra-facts §27.
  summary: 'One OAuth client',
  rest: get('/v1/admin/oauth-clients/{client_id}'),
  guard,
  input: z.object({ client_id: z.uuid() }),
  output: OauthClient,
  errors: { CLIENT_NOT_FOUND: notFound('OAuth client not found') },
  async run({ input, refuse }, { db }) {
    const found = await readClient(db, input.client_id);
    if (found === null) throw refuse('CLIENT_NOT_FOUND');
    const { secret_hash: _hash, ...client } = found;
    return client;
  },
});

/** Lists clients under the guard of the account's keys, because each of them is one. */
export const accountOauthClients = query({
  name: 'accountOauthClients',
  summary: 'The OAuth clients that act on the active account by themselves, newest first',
  rest: get('/v1/account/oauth-clients'),
  pages: numbered('PaginatedAccountOauthClientResult'),
  guard: [permission('apikeys:read')],
  input: z.object({}),
  output: OauthClient,
  run: ({ caller, page }, { db }) =>
    rowsOf(db, page, OauthClient, {
      from: `oauth_clients c where account_id = $1
        and not exists (select 1 from revocations v where v.credential_id = c.client_id::text)`,
      order: 'created_at desc, client_id desc',
      values: [caller.account_id],
    }),
});
