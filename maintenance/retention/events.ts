import type { Database } from '../../engines/postgres/port';
import { sql } from '../../kernel/sql';
import { COUNTED_TYPES } from '../../domain/history/session-figures';
import { type CountingEvent, keepCounts } from './counted-events';
import { sweepExpired } from './expiry';

/** Events per transaction. */
const TOGETHER = 1000;
const EXPIRED = sql`exists (
  select from platform_event_logs e where e.account_id = a.id and e.created_at < limited.until)`;

/**
 * Deletes a batch of an account's events and decrements its counters. The id of an event contains its time of receipt,
 * unless it derives from an Idempotency-Key: events that a vendor reports late are kept as long as others.
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
    returning e.id, e.type, e.platform, e.created_at, e.raw
  ), counted as (
    insert into event_log_counters as c (account_id, type, platform, day, count)
      select $1::uuid, type, platform, (created_at at time zone 'UTC')::date, -count(*) from gone
      group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (account_id, type, platform, day) do update set count = c.count + excluded.count
  )
  select count(*)::int as swept, max(created_at) as last, coalesce(jsonb_agg(jsonb_build_object(
    'account_id', $1::uuid, 'id', id, 'platform', platform, 'type', type, 'created_at', created_at, 'raw', raw::text
  )) filter (where type = any($4) and get_byte(uuid_send(id), 6) >> 4 not in (5, 8)), '[]') as counting from gone`;

/**
 * Deletes expired events from the event log according to each account's plan; the log of records and its archive are
 * unchanged. Returns the number deleted. Source: spec doc1 §8 "Event retention", doc3 §6.1.
 */
export const sweepEvents = (db: Database, signal?: AbortSignal): Promise<number> =>
  sweepExpired(db, EXPIRED, (account_id, until) => sweepAccount(db, account_id, until, signal), signal);

async function sweepAccount(db: Database, account_id: string, until: string, signal?: AbortSignal): Promise<number> {
  let all = 0;
  // Each batch begins where the last one ended, so that remaining events are not read again.
  for (let from = '-infinity', some = TOGETHER; some === TOGETHER && !signal?.aborted;) {
    const gone = await db.transaction(async (tx) => {
      const [row] = await tx.query<{ swept: number; last: string | null; counting: CountingEvent[] }>(SWEEP, [
        ...[account_id, until, from, COUNTED_TYPES],
      ]);
      await keepCounts(tx, row!.counting);
      await tx.query('delete from event_log_counters where account_id = $1 and count = 0', [account_id]);
      return row!;
    });
    some = gone.swept;
    all += some;
    from = gone.last ?? from;
  }
  return all;
}
