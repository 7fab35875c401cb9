import { z } from 'zod';
import { Role, rolesOf } from '../../views/accounts/roles';
import { get, permission, query, whole } from '../../app/operation';
import { ACCOUNT_PERMISSIONS } from '../../domain/common/permissions';

export const roles = query({
  name: 'roles',
  // Source: spec extra-facts §5.
  summary: 'Roles of the active account',
  rest: get('/v1/roles'),
  pages: whole(),
  guard: [permission('roles:read')],
  input: z.object({}),
  output: Role,
  run: ({ caller }, { db }) => rolesOf(db, caller.account_id),
});

const AccountPermission = z
  .object({ permission: z.string(), category: z.string().describe('What it is about: the part before the colon') })
  .meta({ id: 'AccountPermission' });

/** Choices of a role editor. Source: spec doc1 §5.10. */
export const accountPermissions = query({
  name: 'accountPermissions',
  // Source: spec doc1 §5.10.
  summary: 'Every permission that a role can hold',
  rest: get('/v1/roles/permissions'),
  pages: whole(),
  guard: [permission('roles:read')],
  input: z.object({}),
  output: AccountPermission,
  run: async () =>
    ACCOUNT_PERMISSIONS.map((name) => ({ permission: name, category: name.slice(0, name.indexOf(':')) })),
});
