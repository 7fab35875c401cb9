import { FREE_PLAN_ID, PLAN_LIMITS, type PlanLimit } from '../../domain/billing/plan-limits';
import type { Queryable } from '../../engines/postgres/port';
import { planLimit } from '../../kernel/operations/errors';

/**
 * Errors of an operation that a plan limits, checked after everything else: `throw refuse('PLAN_LIMIT_REACHED', {
 * limit: 'max_sounds' })`. Source: spec rulings, "guard messages" and "order of checks".
 */
export const PLAN_LIMIT_REACHED = { PLAN_LIMIT_REACHED: planLimit('Plan limit reached: {limit}') };

/** The account's own limit, else its plan's, else the default. Source: spec extra-facts §18, ruling c67. */
export async function limitOf(db: Queryable, account_id: string, name: PlanLimit): Promise<number> {
  const [row] = await db.query<{ value: number | null }>(
    `select coalesce(
       (select value from account_limit_overrides where account_id = $1 and name = $2),
       (select (p.limits ->> $2)::bigint from plans p
        where p.id = coalesce((select a.plan_id from account_plans a where a.account_id = $1), $3))) as value`,
    [account_id, name, FREE_PLAN_ID],
    'plan-limit',
  );
  return row?.value ?? PLAN_LIMITS[name];
}

/** Number of accounts that a user owns and may own. */
export interface AccountAllowance {
  owned: number;
  /** The operator's limit for the user, else the highest limit among the owned accounts, else the free plan's. */
  max_accounts: number;
  /** The owned account with the highest limit: its features decide whether the user may have several. */
  best_account_id: string | null;
}

/** Source: spec extra-facts §3, rulings "one account too many". */
export async function accountAllowance(db: Queryable, user_id: string): Promise<AccountAllowance> {
  const [row] = await db.query<AccountAllowance>(
    `with owned as (
       select a.id, a.created_at, coalesce(o.value, (p.limits ->> 'max_accounts')::bigint, $3) as most
       from accounts a
       left join account_limit_overrides o on o.account_id = a.id and o.name = 'max_accounts'
       left join account_plans on_plan on on_plan.account_id = a.id
       left join plans p on p.id = coalesce(on_plan.plan_id, $2)
       where a.owner_id = $1
     )
     select (select count(*) from owned) as owned,
            coalesce((select max_accounts from user_overrides where user_id = $1),
                     (select max(most) from owned),
                     (select (limits ->> 'max_accounts')::bigint from plans where id = $2),
                     $3) as max_accounts,
            (select id from owned order by most desc, created_at, id limit 1) as best_account_id`,
    [user_id, FREE_PLAN_ID, PLAN_LIMITS.max_accounts],
    'account-allowance',
  );
  return row!;
}
