import { KEPT_COUNT_DAYS } from '../../domain/history/kept-counts';
import type { Database } from '../../engines/postgres/port';

/** Rows per statement. */
const TOGETHER = 1000;
const TABLES = [
  { table: 'chat_minute_counts', time: 'since' },
  { table: 'erased_uses', time: 'since' },
  { table: 'counted_events', time: 'created_at' },
] as const;

/** A day more, since the first minute of a session may begin before the session. */
const expired = (table: string, time: string): string => `
  delete from ${table} where ctid = any(array(
    select k.ctid from ${table} k where k.${time} < now() - interval '${KEPT_COUNT_DAYS + 1} days'
      and not exists (select from stream_sessions s
        where s.account_id = k.account_id and s.is_live and s.started_at < k.${time} + interval '1 day')
    limit ${TOGETHER}))
  returning 1 as one`;

/** Deletes the counts of deleted rows that no session needs any more. Returns their number. */
export async function sweepKeptCounts(db: Pick<Database, 'query'>, signal?: AbortSignal): Promise<number> {
  let all = 0;
  for (const { table, time } of TABLES) {
    for (let some = TOGETHER; some === TOGETHER && !signal?.aborted; all += some)
      some = (await db.query(expired(table, time), [])).length;
  }
  return all;
}
