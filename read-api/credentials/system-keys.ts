import { z } from 'zod';
import { adminPermission, get, notFound, numbered, query, rowsOf } from '../../app/operation';
import { SystemKey } from '../../views/credentials/system-keys';

/** `which` is a condition on `k`. */
const keysWhere = (which: string): string => `(select k.*, true as is_system, u.last_used_at
  from system_keys k left join credential_uses u on u.credential_id = k.id::text where ${which}) as keys`;
const NEWEST_FIRST = 'created_at desc, id desc';

/** Keys made in the admin panel or by `lumio admin`; configured keys are not listed. */
export const systemKeys = query({
  name: 'systemKeys',
  summary: 'Keys of the service itself, newest first',
  rest: get('/v1/admin/system-keys'),
  pages: numbered('PaginatedSystemKeyResult'),
  guard: [adminPermission('system-keys:read')],
  input: z.object({ search: z.string().trim().max(200).nullish().describe('Part of a label, in whatever case') }),
  output: SystemKey,
  run: ({ input: { search }, page }, { db }) =>
    rowsOf(db, page, SystemKey, {
      from: keysWhere(`$1 = '' or position(lower($1) in lower(k.label)) > 0`),
      order: NEWEST_FIRST,
      values: [search ?? ''],
    }),
});

export const systemKey = query({
  name: 'systemKey',
  summary: 'One key of the service itself',
  rest: get('/v1/admin/system-keys/{id}'),
  guard: [adminPermission('system-keys:read')],
  input: z.object({ id: z.uuid() }),
  output: SystemKey,
  errors: { KEY_NOT_FOUND: notFound('System key not found') },
  async run({ input: { id }, refuse }, { db }) {
    const one = { limit: 1, offset: 0 };
    const { items } = await rowsOf(db, one, SystemKey, {
      from: keysWhere('k.id = $1'),
      order: NEWEST_FIRST,
      values: [id],
    });
    if (items[0] === undefined) throw refuse('KEY_NOT_FOUND');
    return items[0];
  },
});
