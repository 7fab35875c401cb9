import { z } from 'zod';
import { UserApiKey, userApiKeys } from '../../views/credentials/api-keys';
import { command, del, feature, firstParty, notFound, patch, permission, post, type Refuse } from '../../app/operation';
import { generateKey } from '../../access/authentication/keys';
import { recordOrigin } from '../../services/identity/credential-origins';
import { apiKey, type ApiKey, apiKeyStream } from '../../domain/credentials/api-keys';
import {
  revokeBeforeAppend,
  DeleteTokenResult,
  expiry,
  KEY_NOT_IN_VIEW,
  label,
  requireKeyQuota,
  scope,
  SCOPE_ERRORS,
  SESSION_ENDED,
  scopeOf,
  toKeyView,
  TOO_MANY_KEYS,
} from './keys';

const CreateUserApiKeyInput = z
  .object({ label, permissions: scope, expires_at: expiry })
  .meta({ id: 'CreateUserApiKeyInput' });

const CreateUserApiKeyResult = z
  .object({ key: z.string().describe('The full key; it is never shown again'), api_key: UserApiKey })
  .meta({ id: 'CreateUserApiKeyResult' });

/** REST shows the key among the record's own members (spec doc2 §2.5). */
const UserApiKeyCreated = z
  .object({ key: CreateUserApiKeyResult.shape.key, ...UserApiKey.shape })
  .meta({ id: 'UserApiKeyCreated' });

const KEY_NOT_FOUND = { KEY_NOT_FOUND: notFound('API key not found') };

/**
 * Creates a key bound to the caller and the active account; its scope is a subset of the caller's current permissions.
 * Source: spec doc1 §5.4.
 */
export const createUserApiKey = command({
  name: 'createUserApiKey',
  // Source: spec doc1 §5.4.
  summary: 'Creates a personal API key and shows it once',
  rest: post('/v1/api-keys', {
    status: 201,
    location: ({ api_key }: z.output<typeof CreateUserApiKeyResult>) => `/v1/api-keys/${api_key.id}`,
    answer: {
      schema: UserApiKeyCreated,
      of: ({ key, api_key }: z.output<typeof CreateUserApiKeyResult>) => ({ key, ...api_key }),
    },
  }),
  graphql: { argument: 'input' },
  guard: [firstParty, feature('feature:apikeys'), permission('apikeys:create')],
  input: CreateUserApiKeyInput,
  output: CreateUserApiKeyResult,
  errors: { ...SCOPE_ERRORS, ...TOO_MANY_KEYS, ...SESSION_ENDED, KEY_NOT_SHOWN: KEY_NOT_IN_VIEW },
  async run({ input, caller, context, act, refuse, newId }, services) {
    const { account_id, user_id } = caller;
    const { permissions, expires_at } = await scopeOf(input, caller, context, services, refuse);
    const key_id = newId('api-key');
    const keys = 'api_keys where account_id = $1 and user_id = $2 and id <> $3';
    await requireKeyQuota(services, { keys, values: [account_id, user_id, key_id] }, refuse);
    const made_in = { credential_id: key_id, kind: 'api_key', account_id } as const;
    if (!(await recordOrigin(services.db, caller, made_in))) throw refuse('SESSION_ENDED');
    const made = generateKey('user_api_key');
    const { events } = await act(apiKey, apiKeyStream(key_id), {
      type: 'api_key:create',
      key_id,
      account_id,
      user_id,
      key_hash: made.hash,
      key_prefix: made.prefix,
      label: input.label,
      permissions,
      expires_at,
    });
    const created = events.find((event) => event.type === 'api_key:created');
    if (created?.key_hash !== made.hash) throw refuse('KEY_NOT_SHOWN', { id: key_id });
    return {
      key: made.key,
      api_key: { id: key_id, user_id, account_id, ...toKeyView(created) },
    };
  },
});

/** Changes only the label. */
export const updateUserApiKey = command({
  name: 'updateUserApiKey',
  // Source: spec doc1 §5.4.
  summary: "Renames one of the caller's own API keys",
  rest: patch('/v1/api-keys/{id}'),
  guard: [firstParty, feature('feature:apikeys'), permission('apikeys:edit')],
  input: z.object({ id: z.uuid(), label }),
  output: UserApiKey,
  errors: KEY_NOT_FOUND,
  async run({ input, caller, act, refuse }, services) {
    const [row] = await userApiKeys(services.db, caller, input.id);
    if (!row) throw refuse('KEY_NOT_FOUND');
    const rename = { type: 'api_key:rename', label: input.label } as const;
    await act(apiKey, apiKeyStream(input.id), rename, { precondition: own(caller, refuse) });
    return { ...row, label: input.label };
  },
});

/** Revokes the key at once and deletes its row. */
export const deleteUserApiKey = command({
  name: 'deleteUserApiKey',
  // Source: spec doc1 §5.4.
  summary: "Revokes one of the caller's own API keys",
  rest: del('/v1/api-keys/{id}'),
  guard: [firstParty, feature('feature:apikeys'), permission('apikeys:delete')],
  input: z.object({ id: z.uuid() }),
  output: DeleteTokenResult,
  errors: KEY_NOT_FOUND,
  async run({ input, caller, act, refuse }, services) {
    await act(
      apiKey,
      apiKeyStream(input.id),
      { type: 'api_key:revoke' },
      { precondition: own(caller, refuse), ...revokeBeforeAppend(services, input.id) },
    );
    await services.access.announce({ credential_id: input.id });
    return { success: true };
  },
});

/** Refuses keys other than the caller's own active ones on this account as not found. */
const own =
  (caller: { account_id: string; user_id: string }, refuse: Refuse<typeof KEY_NOT_FOUND>) => (key: ApiKey) => {
    const theirs = key.account_id === caller.account_id && key.user_id === caller.user_id;
    return (key.status !== 'active' || !theirs) && refuse('KEY_NOT_FOUND');
  };
