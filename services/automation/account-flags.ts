import { FREE_PLAN_ID } from '../../domain/billing/plan-limits';
import { flagEnabled } from '../../domain/operators/feature-flags';
import { type Queryable, textArray } from '../../engines/postgres/port';

interface Row {
  account_id: string;
  flag: string;
  global: boolean | null;
  plan: boolean | null;
  override: boolean | null;
}

/** Whether flags are on for accounts, as the database has them now. */
export async function accountFlags(
  db: Pick<Queryable, 'query'>,
  accounts: readonly string[],
  flags: readonly string[],
): Promise<(flag: string, account_id: string) => boolean> {
  const distinct = [...new Set(accounts)];
  if (distinct.length === 0) return () => false;
  const rows = await db.query<Row & Record<string, unknown>>(
    `select a.account_id, n.flag,
       (select f.enabled from feature_flags f where f.key = n.flag) as global,
       (select p.enabled from plan_features p where p.flag = n.flag and p.plan_id =
         coalesce((select a2.plan_id from account_plans a2 where a2.account_id = a.account_id), '${FREE_PLAN_ID}'))
         as plan,
       (select o.enabled from account_feature_overrides o where o.account_id = a.account_id and o.flag = n.flag)
         as override
     from (select unnest($1::text[])::uuid as account_id) a cross join unnest($2::text[]) n (flag)`,
    [textArray(distinct), textArray(flags)],
    'account-flags',
  );
  const on = new Set(
    rows.flatMap(({ account_id, flag, global, plan, override }) => {
      const layers = { global: global ?? undefined, plan: plan ?? undefined, override: override ?? undefined };
      return flagEnabled(flag, { ...layers, for_account: true }) ? `${flag} ${account_id}` : [];
    }),
  );
  return (flag, account_id) => on.has(`${flag} ${account_id}`);
}
