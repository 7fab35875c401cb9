import { z } from 'zod';
import { AdminUser, AdminUserDetail, adminUserOf, adminUsers as usersOf } from '../../views/operators/admin-users';
import { adminPermission, get, notFound, numbered, query } from '../../app/operation';

/** Source: spec extra-facts §27. */
export const adminUsers = query({
  name: 'adminUsers',
  summary: 'All users, the newest first',
  rest: get('/v1/admin/users'),
  pages: numbered('PaginatedAdminUserResult'),
  guard: [adminPermission('users:read')],
  input: z.object({
    search: z.string().trim().max(200).nullish().describe('Part of a name or e-mail address, in whatever case'),
  }),
  output: AdminUser,
  run: ({ input, page }, { db }) => usersOf(db, page, { search: input.search ?? '' }),
});

export const adminUser = query({
  name: 'adminUser',
  // Source: spec doc2 §4.2.
  summary: 'One user, with their accounts and logins',
  rest: get('/v1/admin/users/{id}'),
  guard: [adminPermission('users:read')],
  input: z.object({ id: z.uuid() }),
  output: AdminUserDetail,
  errors: { USER_NOT_FOUND: notFound('User not found') },
  async run({ input, refuse }, { db }) {
    const found = await adminUserOf(db, input.id);
    if (found === null) throw refuse('USER_NOT_FOUND');
    return found;
  },
});
