import { z } from 'zod';
import { ACCOUNT_CREATION_OVERRIDES } from '../../domain/identity/user-overrides';
import type { Queryable } from '../../engines/postgres/port';
import type { Rows } from '../../kernel/operations/pages';
import { AccountMembership, accountsOf } from '../accounts/accounts';
import { estimateMatchCount, personMatches, personMatchesTrigrams } from '../identity/name-search';
import { LoginConnection, loginConnectionsOf } from '../identity/login-connections';
import { personal } from '../../services/identity/profiles';

const dateTime = z.string().meta({ format: 'date-time' });
export const AccountCreationOverride = z
  .enum(ACCOUNT_CREATION_OVERRIDES)
  .meta({ id: 'AccountCreationOverride', description: 'As the global switch says, always, or never' });

/** A user as operators see them. Source: spec doc2 §4.2, extra-facts §27. */
export const AdminUser = z
  .object({
    ...personal,
    last_login_at: dateTime.nullable(),
    account_creation_override: AccountCreationOverride,
    max_accounts_override: z.int().nullable().describe('Null: as the plan says'),
    user_role: z.string().describe('Slug of the role that they have regardless of account'),
    admin_roles: z.array(z.string()).describe('Names'),
    account_count: z.int().describe('Accounts that they are a member of'),
  })
  .meta({ id: 'AdminUser' });
export type AdminUser = z.output<typeof AdminUser>;

export const AdminUserDetail = AdminUser.extend({
  accounts: z.array(AccountMembership),
  login_connections: z.array(LoginConnection),
}).meta({ id: 'AdminUserDetail' });
export type AdminUserDetail = z.output<typeof AdminUserDetail>;

/** Subquery of the listed users, by kind of search; $3 is the id or the search text. */
const LISTED = {
  all: 'not materialized (select id, created_at from users)',
  one: 'not materialized (select id, created_at from users where id = $3)',
  many: `not materialized (
    select u.id, u.created_at from users u join profiles p on p.user_id = u.id where ${personMatches('$3')})`,
  few: `materialized (
    select u.id, u.created_at from profiles p join users u on u.id = p.user_id
    where ${personMatchesTrigrams('$3')} and ${personMatches('$3')})`,
} as const;

/** Users whose name or address contains the text, newest first; with `id` only that user. */
export async function adminUsers(
  db: Queryable,
  { limit, offset }: Rows,
  { id, search = '' }: { id?: string; search?: string },
): Promise<{ items: AdminUser[]; total: number }> {
  const newest = {
    of: 'users' as const,
    joins: 'join profiles p on p.user_id = newest.id',
    holds: personMatches('$1'),
  };
  const which = id !== undefined ? 'one' : search === '' ? 'all' : await estimateMatchCount(db, newest, search);
  const rows = await db.query<AdminUser & { total: number }>(
    `with listed as ${LISTED[which]}
     select counted.total, page.* from (select count(*)::int as total from listed) counted
     left join (
       select u.id, coalesce(p.display_name, '') as display_name, p.email, p.avatar_url, u.created_at, u.last_login_at,
         coalesce(o.account_creation, 'default') as account_creation_override,
         o.max_accounts as max_accounts_override,
         coalesce((select r.slug from user_role_holders h join user_roles r on r.id = h.role_id where h.user_id = u.id),
                  (select slug from user_roles where is_default), 'member') as user_role,
         array(select r.name from user_admin_roles h join admin_roles r on r.key = h.role where h.user_id = u.id
               order by r.name) as admin_roles,
         (select count(*)::int from account_members m where m.user_id = u.id) as account_count
       from (select id from listed order by created_at desc, id desc limit $1 offset $2) l
       join users u on u.id = l.id left join profiles p on p.user_id = u.id
       left join user_overrides o on o.user_id = u.id
     ) page on true order by created_at desc, id desc`,
    [limit, offset, ...(which === 'all' ? [] : [id ?? search])],
    `admin-users-${which}`,
  );
  return { items: rows.flatMap(({ total: _total, ...one }) => (one.id === null ? [] : [one])), total: rows[0]!.total };
}

/** Null for an unknown user. */
export async function adminUserOf(db: Queryable, user_id: string): Promise<AdminUserDetail | null> {
  const [{ items }, accounts, login_connections] = await Promise.all([
    adminUsers(db, { limit: 1, offset: 0 }, { id: user_id }),
    accountsOf(db, user_id),
    loginConnectionsOf(db, user_id),
  ]);
  return items[0] === undefined ? null : { ...items[0], accounts, login_connections };
}
