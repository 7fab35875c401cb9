import { z } from 'zod';
import { hasPermission } from '../../access/authorization/permission-check';
import { displayNameInput } from '../../app/name-inputs';
import { OauthClient } from '../../views/oauth-provider/oauth-clients';
import { newClientSecret, readClient } from '../../services/oauth/oauth-clients';
import { killClient } from '../../access/authentication/tokens/oauth-grants';
import { rightsChanged } from '../../access/authentication/revocations';
import {
  adminPermission,
  command,
  conflict,
  del,
  forbidden,
  invalid,
  notFound,
  patch,
  permission,
  post,
  type Refuse,
} from '../../app/operation';
import type { Act } from '../../app/write-path/act';
import type { Caller } from '../../access/authentication/caller';
import type { Services } from '../../app/services';
import {
  CLIENT_TYPES,
  GRANT_TYPES,
  oauthClient,
  type OauthClient as Client,
  oauthClientStream,
} from '../../domain/oauth-provider/oauth-clients';
import { ACCOUNT_PERMISSIONS } from '../../domain/common/permissions';
import type { DomainError } from '../../kernel/errors';

const name = displayNameInput('name is required', 'name must be 100 characters or less');
const redirect_uris = z.array(z.string().max(2000)).max(20).describe('Matched to the character; no wildcards');
const scopes = z
  .array(
    z
      .string()
      .max(100)
      .meta({ enum: [...ACCOUNT_PERMISSIONS] }),
  )
  .min(1, 'scopes must name at least one permission')
  .max(200)
  .describe('Account permissions that the client may ask for');
const grant_types = z
  .array(z.enum(GRANT_TYPES).meta({ id: 'OauthGrantType' }))
  .min(1, 'grant_types must name at least one grant type')
  .max(GRANT_TYPES.length)
  .describe('`password` may be noted and is never served');

const refusals = {
  REDIRECT_URI_REFUSED: invalid('Invalid redirect URI: {redirect_uri}'),
  REDIRECT_URI_MISSING: invalid('authorization_code needs a redirect URI'),
  UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}'),
  SCOPE_NOT_FOR_CLIENTS: invalid('An OAuth client may not hold {permission}: what it makes would outlive it'),
  NOT_ITS_OWN_MASTER: invalid('client_credentials needs a confidential client with an account'),
  ACCOUNT_NOT_FOUND: notFound('Account not found'),
  NOT_OF_ACCOUNT: forbidden('This action requires membership of the account'),
  SCOPE_BEYOND_OWN: forbidden('Missing permission: {permission}'),
};
const CLIENT_NOT_FOUND = { CLIENT_NOT_FOUND: notFound('OAuth client not found') };
// A retry after a lost answer finds a secret that nobody has seen, because only its hash is stored.
const SECRET_NOT_SHOWN = {
  SECRET_NOT_SHOWN: conflict('The secret was made but can no longer be shown; rotate it', { shows: ['client_id'] }),
};

/**
 * Requires the client's scopes on its account: a client that acts for an account is a key to it, so whoever makes it or
 * obtains its secret must hold them there.
 */
async function holdOnAccount(
  caller: Caller,
  { accounts }: Pick<Services, 'accounts'>,
  { account_id, scopes }: { account_id: string | null; scopes: readonly string[] },
  refuse: Refuse<typeof refusals>,
): Promise<void> {
  if (account_id === null) return;
  const { caller: there, exists } = await accounts.on(caller, account_id);
  if (!exists) throw refuse('ACCOUNT_NOT_FOUND');
  if (there === null) throw refuse('NOT_OF_ACCOUNT');
  const missing = scopes.find((permission) => !hasPermission(there, there.permissions, permission));
  if (missing !== undefined) throw refuse('SCOPE_BEYOND_OWN', { permission: missing });
}

const client_secret = z.string().nullable().describe('Shown once; null for a public client');
const WithSecret = z.object({ client: OauthClient, client_secret });

export const createOauthClient = command({
  name: 'createOauthClient',
  // Source: spec extra-facts §27.
  summary: 'Registers an OAuth client, and shows its secret once',
  rest: post('/v1/admin/oauth-clients', {
    status: 201,
    location: ({ client }: z.output<typeof WithSecret>) => `/v1/admin/oauth-clients/${client.client_id}`,
    answer: {
      schema: z.object({ ...OauthClient.shape, client_secret }).meta({ id: 'OauthClientCreated' }),
      of: ({ client, client_secret }: z.output<typeof WithSecret>) => ({ ...client, client_secret }),
    },
  }),
  graphql: { argument: 'input' },
  guard: [adminPermission('oauth-clients:create')],
  input: z
    .object({
      name,
      client_type: z.enum(CLIENT_TYPES).meta({ id: 'OauthClientType' }),
      redirect_uris: redirect_uris.nullish(),
      scopes,
      grant_types,
      enabled: z.boolean().nullish().describe('Default: true'),
      account_id: z.uuid().nullish().describe('What client_credentials act on; fixed once created'),
    })
    .meta({ id: 'CreateOauthClientInput' }),
  output: WithSecret.meta({ id: 'CreateOauthClientResult' }),
  errors: { ...refusals, ...SECRET_NOT_SHOWN },
  async run({ input, caller, act, refuse, newId }, services) {
    const { name, client_type, scopes, grant_types } = input;
    const account_id = input.account_id?.toLowerCase() ?? null;
    await holdOnAccount(caller, services, { account_id, scopes }, refuse);
    const client_id = newId('oauth-client');
    const made = client_type === 'confidential' ? newClientSecret() : null;
    const { state } = await act(oauthClient, oauthClientStream(client_id), {
      type: 'oauth_client:register',
      ...{ client_id, client_type, account_id, name, scopes, grant_types },
      redirect_uris: input.redirect_uris ?? [],
      enabled: input.enabled ?? true,
      secret_hash: made?.hash ?? null,
    });
    if (state.status !== 'active' || state.secret_hash !== (made?.hash ?? null)) {
      throw refuse('SECRET_NOT_SHOWN', { client_id });
    }
    const { status: _status, secret_hash: _hash, registered_at, ...client } = state;
    const created_at = registered_at;
    return { client: { ...client, created_at, updated_at: created_at }, client_secret: made?.secret ?? null };
  },
});

export const updateOauthClient = command({
  name: 'updateOauthClient',
  // Source: spec extra-facts §27.
  summary: 'Changes an OAuth client; what is left out stays',
  rest: patch('/v1/admin/oauth-clients/{client_id}'),
  graphql: { argument: 'input', flat_arguments: ['client_id'] },
  guard: [adminPermission('oauth-clients:edit')],
  input: z
    .object({
      client_id: z.uuid(),
      name: name.nullish(),
      redirect_uris: redirect_uris.nullish(),
      scopes: scopes.nullish(),
      grant_types: grant_types.nullish(),
      enabled: z.boolean().nullish(),
    })
    .meta({ id: 'UpdateOauthClientInput' }),
  output: OauthClient,
  errors: { ...refusals, ...CLIENT_NOT_FOUND },
  async run({ input: { client_id, ...input }, caller, act, refuse, context }, services) {
    const row = await readClient(services.db, client_id);
    if (row === null) throw refuse('CLIENT_NOT_FOUND');
    const edit = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null && value !== undefined));
    if (input.scopes || input.grant_types) {
      await holdOnAccount(caller, services, { ...row, scopes: input.scopes ?? row.scopes }, refuse);
    }
    const { state, events } = await act(oauthClient, oauthClientStream(client_id), {
      type: 'oauth_client:change',
      ...edit,
    });
    if (state.status !== 'active') throw refuse('CLIENT_NOT_FOUND');
    await services.access.announce(rightsChanged(client_id));
    const { name, redirect_uris, scopes, grant_types, enabled } = state;
    const { secret_hash: _hash, ...client } = row;
    const updated_at = events.length > 0 ? new Date(context.now).toISOString() : row.updated_at;
    return { ...client, name, redirect_uris, scopes, grant_types, enabled, updated_at };
  },
});

export const rotateOauthClientSecret = command({
  name: 'rotateOauthClientSecret',
  // Source: spec extra-facts §27.
  summary: 'Gives an OAuth client another secret, shown once; the one before is refused at once',
  rest: post('/v1/admin/oauth-clients/{client_id}/rotate-secret'),
  guard: [adminPermission('oauth-clients:edit')],
  input: z.object({ client_id: z.uuid() }),
  output: z.object({ client_id: z.uuid(), client_secret: z.string() }).meta({ id: 'OauthClientSecret' }),
  errors: {
    ...refusals,
    ...CLIENT_NOT_FOUND,
    ...SECRET_NOT_SHOWN,
    NO_SECRET: conflict('A public client has no secret'),
  },
  async run({ input: { client_id }, caller, act, refuse }, services) {
    const row = await readClient(services.db, client_id);
    if (row === null) throw refuse('CLIENT_NOT_FOUND');
    await holdOnAccount(caller, services, row, refuse);
    const made = newClientSecret();
    const rotate = { type: 'oauth_client:rotate_secret', secret_hash: made.hash } as const;
    const { state } = await act(oauthClient, oauthClientStream(client_id), rotate);
    if (state.status !== 'active' || state.secret_hash !== made.hash) throw refuse('SECRET_NOT_SHOWN', { client_id });
    return { client_id, client_secret: made.secret };
  },
});

const DeleteOauthClientResult = z.object({ success: z.boolean() }).meta({ id: 'DeleteOauthClientResult' });

/** Deletes a client; its tokens end and their sockets are closed. */
export const deleteOauthClient = command({
  name: 'deleteOauthClient',
  // Source: spec extra-facts §27.
  summary: 'Deletes an OAuth client, and ends all that it was given',
  rest: del('/v1/admin/oauth-clients/{client_id}'),
  guard: [adminPermission('oauth-clients:delete')],
  input: z.object({ client_id: z.uuid() }),
  output: DeleteOauthClientResult,
  errors: CLIENT_NOT_FOUND,
  async run({ input: { client_id }, act }, services) {
    await deleteClient(act, services, client_id);
    return { success: true };
  },
});

/** Grants of users, who may be of any account. */
const OF_USERS: ReadonlySet<string> = new Set(['authorization_code', 'refresh_token']);

/** Deletes a client of the account under the guard of its keys, because it is one. */
export const deleteAccountOauthClient = command({
  name: 'deleteAccountOauthClient',
  summary: 'Deletes an OAuth client that acts on the active account by itself, and ends all that it was given',
  rest: del('/v1/account/oauth-clients/{client_id}'),
  guard: [permission('apikeys:delete')],
  input: z.object({ client_id: z.uuid() }),
  output: DeleteOauthClientResult,
  errors: {
    ...CLIENT_NOT_FOUND,
    ACTS_FOR_USERS: conflict('Users log in with this OAuth client too: only an administrator may delete it'),
  },
  async run({ input: { client_id }, caller, act, refuse }, services) {
    await deleteClient(act, services, client_id, (client) => {
      if (client.status !== 'active' || client.account_id !== caller.account_id) return refuse('CLIENT_NOT_FOUND');
      return client.grant_types.some((type) => OF_USERS.has(type)) && refuse('ACTS_FOR_USERS');
    });
    return { success: true };
  },
});

async function deleteClient(
  act: Act,
  services: Services,
  client_id: string,
  given: (client: Client) => DomainError | false = () => false,
): Promise<void> {
  // Before the append, so that no crash leaves ended tokens valid.
  const additionalWrites = async () => {
    await killClient(services.db, client_id);
    return [];
  };
  await act(
    oauthClient,
    oauthClientStream(client_id),
    { type: 'oauth_client:delete' },
    { precondition: given, additionalWrites },
  );
  await services.access.announce({ credential_id: client_id });
}
