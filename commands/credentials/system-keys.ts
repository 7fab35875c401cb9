import { z } from 'zod';
import type { Caller } from '../../access/authentication/caller';
import { hasPermission } from '../../access/authorization/permission-check';
import { generateKey } from '../../access/authentication/keys';
import { adminPermission, command, del, notFound, post } from '../../app/operation';
import { SystemKey } from '../../views/credentials/system-keys';
import { shownInstant } from '../../lib/time/instants';
import { ADMIN_PERMISSIONS, expandGrants, isSystemGrant } from '../../domain/common/permissions';
import { systemKey, systemKeyStream } from '../../domain/credentials/system-keys';
import { revokeBeforeAppend, DeleteTokenResult, KEY_NOT_IN_VIEW, label, SCOPE_ERRORS } from './keys';

const CreateSystemKeyInput = z
  .object({
    label,
    permissions: z
      .array(z.string().max(100))
      .min(1, 'permissions must name at least one permission')
      .max(500)
      .describe('Account and admin permissions; `resource:*` is every action of that resource'),
  })
  .meta({ id: 'CreateSystemKeyInput' });

const CreateSystemKeyResult = z
  .object({ key: z.string().describe('The full key; it is never shown again'), system_key: SystemKey })
  .meta({ id: 'CreateSystemKeyResult' });

/** REST shows the key among the record's own members, as for other keys. */
const SystemKeyCreated = z
  .object({ key: CreateSystemKeyResult.shape.key, ...SystemKey.shape })
  .meta({ id: 'SystemKeyCreated' });

const { UNKNOWN_PERMISSION, PERMISSION_BEYOND_OWN } = SCOPE_ERRORS;

/** Grants that a system key may hold but that include no permission. Source: spec doc1 §5.4. */
const BARE: ReadonlySet<string> = new Set(['*', '*:*']);

/** Source: spec doc1 §5.4, rulings "paths left open". */
export const createSystemKey = command({
  name: 'createSystemKey',
  summary: 'Creates a key of the service itself and shows it once',
  rest: post('/v1/admin/system-keys', {
    status: 201,
    location: ({ system_key }: z.output<typeof CreateSystemKeyResult>) => `/v1/admin/system-keys/${system_key.id}`,
    answer: {
      schema: SystemKeyCreated,
      of: ({ key, system_key }: z.output<typeof CreateSystemKeyResult>) => ({ key, ...system_key }),
    },
  }),
  graphql: { argument: 'input' },
  guard: [adminPermission('system-keys:create')],
  input: CreateSystemKeyInput,
  output: CreateSystemKeyResult,
  errors: { UNKNOWN_PERMISSION, PERMISSION_BEYOND_OWN, KEY_NOT_SHOWN: KEY_NOT_IN_VIEW },
  async run({ input, caller, act, refuse, newId }) {
    const permissions = [...new Set(input.permissions)];
    const unknown = permissions.find((name) => !isSystemGrant(name) && !BARE.has(name));
    if (unknown !== undefined) throw refuse('UNKNOWN_PERMISSION', { permission: unknown });
    const lacking = beyondAdmin(permissions, caller);
    if (lacking !== undefined) throw refuse('PERMISSION_BEYOND_OWN', { permission: lacking });

    const key_id = newId('system-key');
    const made = generateKey('system_key');
    const { events } = await act(systemKey, systemKeyStream(key_id), {
      type: 'system_key:create',
      key_id,
      key_hash: made.hash,
      key_prefix: made.prefix,
      label: input.label,
      permissions,
    });
    const created = events.find((event) => event.type === 'system_key:created');
    if (created?.key_hash !== made.hash) throw refuse('KEY_NOT_SHOWN', { id: key_id });
    return {
      key: made.key,
      system_key: {
        id: key_id,
        key_prefix: created.key_prefix,
        label: created.label,
        permissions: created.permissions,
        is_system: true,
        created_at: shownInstant(created.created_at),
        last_used_at: null,
      },
    };
  },
});

/** Revokes the key at once and deletes its row. */
export const deleteSystemKey = command({
  name: 'deleteSystemKey',
  summary: 'Revokes a key of the service itself',
  rest: del('/v1/admin/system-keys/{id}'),
  guard: [adminPermission('system-keys:delete')],
  input: z.object({ id: z.uuid() }),
  output: DeleteTokenResult,
  errors: { KEY_NOT_FOUND: notFound('System key not found') },
  async run({ input: { id }, act, refuse }, services) {
    const precondition = ({ status }: { status: string }) => status !== 'active' && refuse('KEY_NOT_FOUND');
    await act(
      systemKey,
      systemKeyStream(id),
      { type: 'system_key:revoke' },
      { precondition, ...revokeBeforeAppend(services, id) },
    );
    await services.access.announce({ credential_id: id });
    return { success: true };
  },
});

/**
 * First of these grants that the maker may not grant. A system key may grant what it holds. A person may grant the
 * admin permissions they hold; account permissions need only `system-keys:create`.
 */
function beyondAdmin(grants: readonly string[], caller: Caller): string | undefined {
  if (caller.kind === 'system_key') return grants.find((name) => !hasPermission(caller, caller.permissions, name));
  return expandGrants(grants, ADMIN_PERMISSIONS).find((name) => !caller.admin_permissions.has(name));
}
