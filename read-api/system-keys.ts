import { z } from 'zod';
import { adminPermission, get, numbered, query, rowsOf } from '../access/operation';
import { SystemKey } from '../access/system-keys';

/** Those made in the admin panel or by `lumio admin`; the keys of the configuration are shown there. */
export const systemKeys = query({
  name: 'systemKeys',
  summary: 'Keys of the service itself, newest first',
  rest: get('/v1/admin/system-keys'),
  pages: numbered('PaginatedSystemKeyResult'),
  guard: [adminPermission('system-keys:read')],
  input: z.object({}),
  output: SystemKey,
  run({ page }, { db }) {
    const from = `(select k.*, true as is_system, u.last_used_at
      from system_keys k left join credential_uses u on u.credential_id = k.id::text) as keys`;
    return rowsOf(db, page, SystemKey, { from, order: 'created_at desc, id desc', values: [] });
  },
});
