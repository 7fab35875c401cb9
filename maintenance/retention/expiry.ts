import { FREE_PLAN_ID, PLAN_LIMITS, type PlanLimit } from '../../domain/billing/plan-limits';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { Sql } from '../../kernel/sql';

const LIMIT: PlanLimit = 'chat_retention_days';
/** A higher number of days means unlimited, as 0 does. */
const MAX_DAYS = 10_000;
/** Read models that define the retention; an unfinished one may be wrong. */
const ANNOUNCED = ['accounts', 'plans'];
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
/** Accounts per query. */
const ACCOUNTS = 1000;

/** Joins the time `limited.until` up to which rows of the accounts `a` have expired. */
const LIMITED = `
    left join account_limit_overrides o on o.account_id = a.id and o.name = '${LIMIT}'
    left join account_plans on_plan on on_plan.account_id = a.id
    left join plans p on p.id = coalesce(on_plan.plan_id, $2)
    cross join lateral (select coalesce(o.value, (p.limits ->> '${LIMIT}')::bigint, $3) as days) said
    cross join lateral (
      select now() - make_interval(days => case when days between 1 and ${MAX_DAYS} then days::int end) as until
    ) limited
  where (select bool_and(built) and count(distinct projection) = 2 from checkpoints where projection = any($4))
  order by a.id`;

/**
 * Accounts by id, each with the time up to which its rows have expired; null without expired rows. The account's own
 * limit wins, then its plan's, then the default. `expired` is a condition on `a.id` and `limited.until`.
 */
const lookFor = (expired: Sql) => `
  select a.id, case when ${expired.text} then limited.until end as until
  from (select id from accounts where id > $1 order by id limit ${ACCOUNTS}) a
    ${LIMITED}`;

/**
 * Runs `sweep` for each account with rows that have expired by its `chat_retention_days`, until `signal` is aborted.
 * Returns the sum of what it returns. Source: spec doc1 §8 "Event retention", doc3 §6.1.
 */
export async function sweepExpired(
  db: Database,
  expired: Sql,
  sweep: (account_id: string, until: string) => Promise<number>,
  signal?: AbortSignal,
): Promise<number> {
  let swept = 0;
  for (let after = BEFORE_ALL; !signal?.aborted;) {
    const values = [after, FREE_PLAN_ID, PLAN_LIMITS[LIMIT], ANNOUNCED];
    const accounts = await db.query<{ id: string; until: string | null }>(lookFor(expired), values);
    for (const { id, until } of accounts) if (until !== null && !signal?.aborted) swept += await sweep(id, until);
    if (accounts.length < ACCOUNTS) break;
    after = accounts.at(-1)!.id;
  }
  return swept;
}

const UNTIL = `select a.id, limited.until from unnest($1::uuid[]) a (id) ${LIMITED}`;

/** Time up to which rows of these accounts have expired, by account; none of an account that keeps all. */
export async function expiryOf(db: Queryable, account_ids: readonly string[]): Promise<Map<string, string>> {
  const values = [account_ids, FREE_PLAN_ID, PLAN_LIMITS[LIMIT], ANNOUNCED];
  const rows = await db.query<{ id: string; until: string | null }>(UNTIL, values);
  return new Map(rows.flatMap(({ id, until }) => (until === null ? [] : [[id, until] as const])));
}
