import { FREE_PLAN_ID, PLAN_LIMITS, type PlanLimit } from '../domain/plan-limits';
import type { Database } from '../engines/postgres/port';

const LIMIT: PlanLimit = 'chat_retention_days';
/** More days than this mean for ever, as 0 does. */
const MOST_DAYS = 10_000;
/** Read models that say how long events are kept; one that is still built may say it wrongly. */
const TELLING = ['accounts', 'plans'];
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
/** Accounts of one look, and events of one transaction. */
const ACCOUNTS = 1000;
const TOGETHER = 1000;

/**
 * Accounts in the order of their ids, and up to when each one's events have had their time; null where there are none.
 * The account's own limit goes first, then its plan's, then the default.
 */
const LOOK = `
  select a.id, case when exists (
      select from platform_event_logs e where e.account_id = a.id and e.created_at < limited.until
    ) then limited.until end as until
  from (select id from accounts where id > $1 order by id limit ${ACCOUNTS}) a
    left join account_limit_overrides o on o.account_id = a.id and o.name = '${LIMIT}'
    left join account_plans on_plan on on_plan.account_id = a.id
    left join plans p on p.id = coalesce(on_plan.plan_id, $2)
    cross join lateral (select coalesce(o.value, (p.limits ->> '${LIMIT}')::bigint, $3) as days) said
    cross join lateral (
      select now() - make_interval(days => case when days between 1 and ${MOST_DAYS} then days::int end) as until
    ) limited
  where (select bool_and(built) and count(distinct projection) = 2 from checkpoints where projection = any($4))
  order by a.id`;

/**
 * Deletes some of an account's events and takes them off its counters. The id of an event says when it was received,
 * unless it derives from an Idempotency-Key: what a vendor tells late is kept as long as what it tells at once.
 */
const SWEEP = `
  with old as (
    select id, created_at from platform_event_logs
    where account_id = $1 and created_at < $2 and created_at >= $3
      and (get_byte(uuid_send(id), 6) >> 4 <> 7
        or id < (lpad(to_hex((extract(epoch from $2::timestamptz) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid)
    order by created_at limit ${TOGETHER}
  ), gone as (
    delete from platform_event_logs e using old where e.id = old.id and e.created_at = old.created_at
    returning e.type, e.platform, e.created_at
  ), counted as (
    insert into event_log_counters as c (account_id, type, platform, day, count)
      select $1::uuid, type, platform, (created_at at time zone 'UTC')::date, -count(*) from gone
      group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (account_id, type, platform, day) do update set count = c.count + excluded.count
  )
  select count(*)::int as swept, max(created_at) as last from gone`;

/**
 * Deletes the events that an account's plan keeps no longer from the event log; the log of records and its archive keep
 * what they hold. Returns how many. Source: spec doc1 §8 "Event retention", doc3 §6.1.
 */
export async function sweepEvents(db: Database, signal?: AbortSignal): Promise<number> {
  let swept = 0;
  for (let after = BEFORE_ALL; !signal?.aborted;) {
    const accounts = await db.query<{ id: string; until: string | null }>(LOOK, [
      after,
      FREE_PLAN_ID,
      PLAN_LIMITS[LIMIT],
      TELLING,
    ]);
    for (const { id, until } of accounts) if (until !== null) swept += await sweepAccount(db, id, until, signal);
    if (accounts.length < ACCOUNTS) break;
    after = accounts.at(-1)!.id;
  }
  return swept;
}

async function sweepAccount(db: Database, account_id: string, until: string, signal?: AbortSignal): Promise<number> {
  let all = 0;
  // Each look begins where the last one ended: what stays there is not read again.
  for (let from = '-infinity', some = TOGETHER; some === TOGETHER && !signal?.aborted;) {
    const gone = await db.transaction(async (tx) => {
      const [row] = await tx.query<{ swept: number; last: string | null }>(SWEEP, [account_id, until, from]);
      await tx.query('delete from event_log_counters where account_id = $1 and count = 0', [account_id]);
      return row!;
    });
    some = gone.swept;
    all += some;
    from = gone.last ?? from;
  }
  return all;
}
