import type { Database } from '../../engines/postgres/port';

/** Rows per transaction. */
const TOGETHER = 1000;

/**
 * Tables whose rows no event of the account ends, because records and calls of vendors fill them. All other tables of
 * accounts are listed in test/rules/dissolved-accounts.test.ts.
 */
export const SWEPT_TABLES = [
  'platform_chat_messages',
  'moderation_log',
  'platform_users',
  'platform_user_details',
  'platform_user_refreshes',
  'unknown_user_refreshes',
  'chat_message_counts',
  'chat_heads',
  'chat_sends',
  'chatters',
  'chat_minute_counts',
  'erased_uses',
  'erased_shared_messages',
  'platform_event_logs',
  'event_log_counters',
  'counted_events',
  'late_spans',
  'channel_status',
  'broadcast_figures',
  'stream_samples',
  'member_keys',
  'emitted_bytes',
  // Runs that begin while their account ends.
  'automation_runs',
  'automation_accounts',
  'automation_cooldowns',
  'automation_schedules',
  'automation_webhook_secrets',
  // Lines and timed messages of the same moment.
  'bot_command_uses',
  'timed_messages',
] as const;

/** A place is unique in its partition alone; a row of the same place elsewhere is deleted only for its account, too. */
const sweepOf = (table: string): string => `
  delete from ${table} where account_id in (select account_id from dissolved_accounts) and ctid = any(array(
    select t.ctid from dissolved_accounts d
      cross join lateral (select ctid from ${table} t where t.account_id = d.account_id limit ${TOGETHER}) t
    limit ${TOGETHER}))
  returning 1 as one`;

/**
 * Deletes the rows of dissolved accounts that records and calls have left, and those that late records or a rebuild
 * bring. Returns their number.
 */
export async function sweepDissolved(db: Pick<Database, 'query'>, signal?: AbortSignal): Promise<number> {
  let all = 0;
  for (const table of SWEPT_TABLES) {
    for (let some = TOGETHER; some >= TOGETHER && !signal?.aborted; all += some)
      some = (await db.query(sweepOf(table), [])).length;
  }
  return all;
}
