import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import type { Rows } from '../../kernel/operations/pages';
import { FREE_PLAN_ID } from '../../domain/billing/plan-limits';
import { ACCOUNT_NAME } from '../accounts/accounts';
import {
  accountMatches,
  accountsMatching,
  estimateMatchCount,
  newestAccounts,
  personMatches,
} from '../identity/name-search';

const dateTime = z.string().meta({ format: 'date-time' });

/** An account as operators see it. Source: spec extra-facts §27. */
export const AdminAccount = z
  .object({
    id: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    owner_id: z.uuid(),
    owner_name: z.string().nullable(),
    plan: z.string().describe("The plan's slug"),
    member_count: z.int(),
    created_at: dateTime,
  })
  .meta({ id: 'AdminAccount' });
export type AdminAccount = z.output<typeof AdminAccount>;

const Role = z.object({ id: z.uuid(), slug: z.string(), name: z.string() }).meta({ id: 'AdminAccountRole' });
export const AdminAccountDetail = AdminAccount.extend({
  roles: z.array(Role).describe('That members may be given, the Owner first'),
}).meta({ id: 'AdminAccountDetail' });
export type AdminAccountDetail = z.output<typeof AdminAccountDetail>;

/** Subquery of the listed accounts, by kind of search; $3 is the id or the search text. */
const LISTED = {
  all: 'not materialized (select id, created_at from accounts)',
  one: 'not materialized (select id, created_at from accounts where id = $3)',
  many: `not materialized (
    select a.id, a.created_at from accounts a left join profiles p on p.user_id = a.owner_id
    where ${accountMatches('$3')} or ${personMatches('$3')})`,
  few: `materialized (${accountsMatching('$3', personMatches('$3'))})`,
} as const;

/** Accounts whose name or owner contains the text, newest first; with `id` only that account. */
export async function adminAccounts(
  db: Queryable,
  { limit, offset }: Rows,
  { id, search = '' }: { id?: string; search?: string },
): Promise<{ items: AdminAccount[]; total: number }> {
  const newest = newestAccounts(personMatches('$1'));
  const which = id !== undefined ? 'one' : search === '' ? 'all' : await estimateMatchCount(db, newest, search);
  const rows = await db.query<AdminAccount & { total: number }>(
    `with listed as ${LISTED[which]}
     select counted.total, page.* from (select count(*)::int as total from listed) counted
     left join (
       select a.id, ${ACCOUNT_NAME} as name, a.description, a.owner_id, p.display_name as owner_name,
         coalesce(pl.slug, 'free') as plan,
         (select count(*)::int from account_members m where m.account_id = a.id) as member_count, a.created_at
       from (select id from listed order by created_at desc, id desc limit $1 offset $2) l
       join accounts a on a.id = l.id left join profiles p on p.user_id = a.owner_id
       left join account_plans ap on ap.account_id = a.id
       left join plans pl on pl.id = coalesce(ap.plan_id, '${FREE_PLAN_ID}')
     ) page on true order by created_at desc, id desc`,
    [limit, offset, ...(which === 'all' ? [] : [id ?? search])],
    `admin-accounts-${which}`,
  );
  return { items: rows.flatMap(({ total: _total, ...one }) => (one.id === null ? [] : [one])), total: rows[0]!.total };
}

/** Null for an unknown account. */
export async function adminAccountOf(db: Queryable, account_id: string): Promise<AdminAccountDetail | null> {
  const { items } = await adminAccounts(db, { limit: 1, offset: 0 }, { id: account_id });
  if (items[0] === undefined) return null;
  const roles = await db.query<z.output<typeof Role>>(
    'select id, slug, name from account_roles where account_id = $1 order by position, id',
    [account_id],
    'admin-account-roles',
  );
  return { ...items[0], roles };
}

/** Overrides that an operator has set for one account; they win over its plan. Source: spec doc1 §5.11, ruling c67. */
export const AccountOverrides = z
  .object({
    features: z.array(z.object({ key: z.string(), enabled: z.boolean() }).meta({ id: 'AccountFeatureOverride' })),
    limits: z.array(
      z.object({ name: z.string(), value: z.int().max(Number.MAX_SAFE_INTEGER) }).meta({ id: 'AccountLimitOverride' }),
    ),
    custom_bot_allowed: z.boolean().nullable().describe('Whether it may have bots of its own; null: the default, true'),
  })
  .meta({ id: 'AccountOverrides' });
export type AccountOverrides = z.output<typeof AccountOverrides>;

export async function overridesOf(db: Queryable, account_id: string): Promise<AccountOverrides> {
  const [features, limits, [custom_bot]] = await Promise.all([
    db.query<AccountOverrides['features'][number]>(
      'select flag as key, enabled from account_feature_overrides where account_id = $1 order by flag',
      [account_id],
      'account-feature-overrides',
    ),
    db.query<AccountOverrides['limits'][number]>(
      'select name, value from account_limit_overrides where account_id = $1 order by name',
      [account_id],
      'account-limit-overrides',
    ),
    db.query<{ allowed: boolean }>(
      'select allowed from custom_bot_overrides where account_id = $1',
      [account_id],
      'custom-bot-override',
    ),
  ]);
  return { features, limits, custom_bot_allowed: custom_bot?.allowed ?? null };
}
