import { z } from 'zod';
import { UserApiKey, userApiKeys } from '../access/api-keys';
import {
  command,
  conflict,
  del,
  feature,
  firstParty,
  forbidden,
  invalid,
  notFound,
  patch,
  permission,
  post,
  type Refuse,
} from '../access/operation';
import { generateKey } from '../access/keys';
import { apiKey, type ApiKey, apiKeyStream } from '../domain/api-keys';
import { INSTANT_PATTERN, parseInstant, shownInstant } from '../domain/instants';
import { ACCOUNT_PERMISSIONS, isAccountPermission } from '../domain/permissions';

const label = z.string().trim().min(1, 'label is required').max(100, 'label must be 100 characters or less');

const CreateUserApiKeyInput = z
  .object({
    label,
    permissions: z
      .array(
        z
          .string()
          .max(100)
          .meta({ enum: [...ACCOUNT_PERMISSIONS] }),
      )
      .min(1, 'permissions must name at least one permission')
      .max(500)
      .describe("A subset of the creator's own permissions; fixed once created"),
    expires_at: z
      .string()
      .refine((text) => parseInstant(text) !== null, 'expires_at must be an RFC 3339 date-time')
      .meta({ pattern: INSTANT_PATTERN })
      .nullish()
      .describe('RFC 3339; null or absent: never'),
  })
  .meta({ id: 'CreateUserApiKeyInput' });

const CreateUserApiKeyResult = z
  .object({ key: z.string().describe('The full key; it is never shown again'), api_key: UserApiKey })
  .meta({ id: 'CreateUserApiKeyResult' });

/** REST shows the key among the record's own members (spec doc2 §2.5). */
const UserApiKeyCreated = z
  .object({ key: CreateUserApiKeyResult.shape.key, ...UserApiKey.shape })
  .meta({ id: 'UserApiKeyCreated' });

const DeleteTokenResult = z.object({ success: z.boolean() }).meta({ id: 'DeleteTokenResult' });

const KEY_NOT_FOUND = { KEY_NOT_FOUND: notFound('API key not found') };

/**
 * Bound to the caller and the active account; the scope is a subset of what the caller holds now. Source: spec doc1
 * §5.4.
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
  errors: {
    UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}'),
    EXPIRY_IN_THE_PAST: invalid('expires_at cannot be in the past'),
    PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}'),
    // A retry of a call whose answer was lost finds a key that nobody has seen: only its hash was kept.
    KEY_NOT_SHOWN: conflict('The key was created but can no longer be shown; delete it and create another', {
      shows: ['id'],
    }),
  },
  async run({ input, caller, context, act, refuse, newId }) {
    const { account_id, user_id } = caller;
    for (const permission of input.permissions) {
      if (!isAccountPermission(permission)) throw refuse('UNKNOWN_PERMISSION', { permission });
    }
    const wanted = input.expires_at ?? null;
    const expires_at = wanted === null ? null : parseInstant(wanted);
    if (expires_at !== null && Date.parse(expires_at) <= context.now) {
      throw refuse('EXPIRY_IN_THE_PAST');
    }
    const beyond = input.permissions.find((name) => !caller.permissions.has(name));
    if (beyond !== undefined) throw refuse('PERMISSION_BEYOND_OWN', { permission: beyond });

    const key_id = newId('api-key');
    const made = generateKey('user_api_key');
    const { events } = await act(apiKey, apiKeyStream(key_id), {
      type: 'api_key:create',
      key_id,
      account_id,
      user_id,
      key_hash: made.hash,
      key_prefix: made.prefix,
      label: input.label,
      permissions: ACCOUNT_PERMISSIONS.filter((name) => input.permissions.includes(name)),
      expires_at,
    });
    const created = events.find((event) => event.type === 'api_key:created');
    if (created?.key_hash !== made.hash) throw refuse('KEY_NOT_SHOWN', { id: key_id });
    return {
      key: made.key,
      api_key: {
        id: key_id,
        user_id,
        account_id,
        key_prefix: created.key_prefix,
        label: created.label,
        permissions: created.permissions,
        created_at: shownInstant(created.created_at),
        expires_at: created.expires_at && shownInstant(created.expires_at),
        last_used_at: null,
      },
    };
  },
});

/** Changes the label, and nothing else. */
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
    await act(apiKey, apiKeyStream(input.id), rename, { given: own(caller, refuse) });
    return { ...row, label: input.label };
  },
});

/** Revokes the key at once and leaves nothing of it. */
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
      {
        given: own(caller, refuse),
        // Written before the append, and not by the projector alone: no crash leaves a removed key alive while its read
        // model lags. A key whose append failed is dead too, as its owner wanted; it is listed until the call is
        // repeated.
        async also() {
          await services.db.query('insert into revocations (credential_id) values ($1)', [input.id]);
          return [];
        },
      },
    );
    await services.access.announce({ credential_id: input.id });
    return { success: true };
  },
});

/** The caller's own key of the active account; anything else, revoked keys included, is not there. */
const own =
  (caller: { account_id: string; user_id: string }, refuse: Refuse<typeof KEY_NOT_FOUND>) => (key: ApiKey) => {
    const theirs = key.account_id === caller.account_id && key.user_id === caller.user_id;
    return (key.status !== 'active' || !theirs) && refuse('KEY_NOT_FOUND');
  };
