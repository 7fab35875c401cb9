import { z } from 'zod';
import { FREE_PLAN_ID } from '../../domain/billing/plan-limits';
import type { Queryable } from '../../engines/postgres/port';
import { notFound } from '../../kernel/operations/errors';

const dateTime = z.string().meta({ format: 'date-time' });

/** Source: spec extra-facts §3. */
export const Account = z
  .object({
    id: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    plan: z.string().describe("The plan's slug"),
    owner_id: z.uuid(),
    avatar_url: z.string().nullable().describe("Of the primary login connection, else the owner's"),
    primary_login_connection_id: z.uuid().nullable(),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'Account' });
export type Account = z.output<typeof Account>;

/** Account that the caller is a member of. */
export const AccountMembership = Account.extend({
  role: z
    .object({ id: z.uuid(), slug: z.string(), name: z.string(), color: z.string() })
    .meta({ id: 'AccountMembershipRole' }),
  is_owner: z.boolean(),
  joined_at: dateTime,
}).meta({ id: 'AccountMembership' });
export type AccountMembership = z.output<typeof AccountMembership>;

/** The name of an account when neither it nor its owner has one. */
const NAMELESS = 'Account';

/** An account's own name, else its owner's, from `accounts a` and the owner's `profiles p`. */
export const ACCOUNT_NAME = `coalesce(a.name, p.display_name, '${NAMELESS}')`;

const COLUMNS = `a.id, ${ACCOUNT_NAME} as name, a.description, coalesce(pl.slug, 'free') as plan, a.owner_id,
  coalesce(g.avatar_url, p.avatar_url) as avatar_url, a.primary_login_connection_id, a.created_at,
    coalesce(a.updated_at, a.created_at) as updated_at`;
const JOINS = `left join profiles p on p.user_id = a.owner_id
  left join login_grants g on g.login_connection_id = a.primary_login_connection_id
  left join account_plans ap on ap.account_id = a.id
  left join plans pl on pl.id = coalesce(ap.plan_id, '${FREE_PLAN_ID}')`;

export async function accountOf(db: Queryable, account_id: string): Promise<Account | null> {
  const [row] = await db.query<Account>(
    `select ${COLUMNS} from accounts a ${JOINS} where a.id = $1`,
    [account_id],
    'account',
  );
  return row ?? null;
}

/** The accounts that a user is a member of, oldest membership first. */
export function accountsOf(db: Queryable, user_id: string): Promise<AccountMembership[]> {
  return db.query<AccountMembership>(
    `select ${COLUMNS}, a.owner_id = m.user_id as is_owner, m.joined_at,
       jsonb_build_object('id', r.id, 'slug', r.slug, 'name', r.name, 'color', r.color) as role
     from account_members m join accounts a on a.id = m.account_id join account_roles r on r.id = m.role_id ${JOINS}
     where m.user_id = $1 order by m.joined_at, a.id`,
    [user_id],
    'accounts-of-user',
  );
}

/** Name of an account: its own, else its owner's, else {@link NAMELESS}. */
export const nameOf = (name: string | null, owner: { display_name: string } | null): string =>
  name ?? owner?.display_name ?? NAMELESS;

/** Error for an account that was dissolved during the request. */
export const ACCOUNT_NOT_FOUND = { ACCOUNT_NOT_FOUND: notFound('Account not found') };
