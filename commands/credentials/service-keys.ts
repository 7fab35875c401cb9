import { z } from 'zod';
import { actorOf } from '../../access/authentication/caller';
import { serviceKeyOf } from '../../access/authorization/delegation';
import { generateKey } from '../../access/authentication/keys';
import { command, del, feature, notFound, patch, permission, post, type Refuse } from '../../app/operation';
import { AccountServiceKey, accountServiceKeys } from '../../views/credentials/service-keys';
import { shownInstant } from '../../lib/time/instants';
import { serviceKey, type ServiceKey, serviceKeyStream } from '../../domain/credentials/service-keys';
import {
  revokeBeforeAppend,
  DeleteTokenResult,
  expiry,
  KEY_NOT_IN_VIEW,
  label,
  requireKeyQuota,
  scope,
  SCOPE_ERRORS,
  scopeOf,
  toKeyView,
  TOO_MANY_KEYS,
} from './keys';

const CreateAccountServiceKeyInput = z
  .object({ label, permissions: scope, expires_at: expiry })
  .meta({ id: 'CreateAccountServiceKeyInput' });

const CreateAccountServiceKeyResult = z
  .object({ key: z.string().describe('The full key; it is never shown again'), service_key: AccountServiceKey })
  .meta({ id: 'CreateAccountServiceKeyResult' });

/** REST shows the key among the record's own members (spec doc2 §2.5). */
const AccountServiceKeyCreated = z
  .object({ key: CreateAccountServiceKeyResult.shape.key, ...AccountServiceKey.shape })
  .meta({ id: 'AccountServiceKeyCreated' });

const KEY_NOT_FOUND = { KEY_NOT_FOUND: notFound('Service key not found') };

export const createAccountServiceKey = command({
  name: 'createAccountServiceKey',
  summary: 'Creates a key of the active account, which works on whoever leaves, and shows it once',
  rest: post('/v1/service-keys', {
    status: 201,
    location: ({ service_key }: z.output<typeof CreateAccountServiceKeyResult>) => `/v1/service-keys/${service_key.id}`,
    answer: {
      schema: AccountServiceKeyCreated,
      of: ({ key, service_key }: z.output<typeof CreateAccountServiceKeyResult>) => ({ key, ...service_key }),
    },
  }),
  graphql: { argument: 'input' },
  guard: [feature('feature:apikeys'), permission('apikeys:create')],
  input: CreateAccountServiceKeyInput,
  output: CreateAccountServiceKeyResult,
  errors: { ...SCOPE_ERRORS, ...TOO_MANY_KEYS, KEY_NOT_SHOWN: KEY_NOT_IN_VIEW },
  async run({ input, caller, context, act, refuse, newId }, services) {
    const { account_id } = caller;
    const { user_id: created_by } = actorOf(caller);
    const { permissions, expires_at } = await scopeOf(input, caller, context, services, refuse);
    const key_id = newId('service-key');
    const keys = 'service_keys where account_id = $1 and id <> $2';
    await requireKeyQuota(services, { keys, values: [account_id, key_id] }, refuse);
    const made = generateKey('service_key');
    const { events } = await act(serviceKey, serviceKeyStream(key_id), {
      type: 'service_key:create',
      key_id,
      account_id,
      created_by,
      made_with: serviceKeyOf(caller),
      key_hash: made.hash,
      key_prefix: made.prefix,
      label: input.label,
      permissions,
      expires_at,
    });
    const created = events.find((event) => event.type === 'account:service_key_created');
    if (created?.key_hash !== made.hash) throw refuse('KEY_NOT_SHOWN', { id: key_id });
    const shown = toKeyView(created);
    return {
      key: made.key,
      service_key: { id: key_id, account_id, created_by, ...shown, updated_at: shown.created_at },
    };
  },
});

/** Changes only the label. */
export const updateAccountServiceKey = command({
  name: 'updateAccountServiceKey',
  summary: 'Renames a service key of the active account',
  rest: patch('/v1/service-keys/{id}'),
  guard: [feature('feature:apikeys'), permission('apikeys:edit')],
  input: z.object({ id: z.uuid(), label }),
  output: AccountServiceKey,
  errors: KEY_NOT_FOUND,
  async run({ input, caller, act, refuse }, services) {
    const [row] = await accountServiceKeys(services.db, caller, input.id);
    if (!row) throw refuse('KEY_NOT_FOUND');
    const rename = { type: 'service_key:rename', label: input.label } as const;
    const { events } = await act(serviceKey, serviceKeyStream(input.id), rename, { precondition: own(caller, refuse) });
    const [renamed] = events;
    if (renamed?.type !== 'account:service_key_updated') return row;
    return { ...row, label: renamed.label, updated_at: shownInstant(renamed.updated_at) };
  },
});

/** Revokes the key at once and deletes its row. */
export const deleteAccountServiceKey = command({
  name: 'deleteAccountServiceKey',
  summary: 'Revokes a service key of the active account',
  rest: del('/v1/service-keys/{id}'),
  guard: [feature('feature:apikeys'), permission('apikeys:delete')],
  input: z.object({ id: z.uuid() }),
  output: DeleteTokenResult,
  errors: KEY_NOT_FOUND,
  async run({ input: { id }, caller, act, refuse }, services) {
    const options = { precondition: own(caller, refuse), ...revokeBeforeAppend(services, id) };
    await act(serviceKey, serviceKeyStream(id), { type: 'service_key:revoke' }, options);
    await services.access.announce({ credential_id: id });
    return { success: true };
  },
});

/** Refuses all but active keys of the account as not found, also those of another account. */
const own = (caller: { account_id: string }, refuse: Refuse<typeof KEY_NOT_FOUND>) => (key: ServiceKey) =>
  (key.status !== 'active' || key.account_id !== caller.account_id) && refuse('KEY_NOT_FOUND');
