import type { Caller } from '../../access/authentication/caller';
import { permission } from '../../access/authorization/guards';
import { authorise, gateOf, GUARD_MESSAGES } from '../../api/rest/guard';

const caller = (changes: Partial<Caller>): Caller => ({
  kind: 'jwt',
  user_id: 'u',
  account_id: null,
  credential_id: 'c',
  permissions: new Set(['events:read']),
  admin_permissions: new Set(),
  user_permissions: new Set(),
  rate_bucket: '',
  rate_limit: null,
  expires_at: null,
  ...changes,
});
const services = { features: { enabled: async () => true } } as never;

test.each(['jwt', 'system_key'] as const)('a %s without an account never passes a permission', async (kind) => {
  const gate = gateOf({ guard: [permission('events:read')] });
  const passes = async (one: Caller) => authorise(gate, one, services);
  await expect(passes(caller({ kind }))).rejects.toMatchObject({
    code: 'BAD_REQUEST',
    message: GUARD_MESSAGES.account,
  });
  await expect(passes(caller({ kind, account_id: 'a' }))).resolves.toMatchObject({ exists: true });
});
