import { PLATFORMS } from '../../domain/common/vendors';
import type { Database } from '../../engines/postgres/port';
import { Sql } from '../../kernel/sql';
import { deletingMessages } from './deleted-messages';
import { sweepExpired } from './expiry';

/** Messages, and entries of the moderation log, per transaction. */
const TOGETHER = 1000;
const EXPIRED = new Sql(`(
  exists (select from platform_chat_messages m
    where m.account_id = a.id and m.platform = any ('{${PLATFORMS.join()}}')
      and m.place < (extract(epoch from limited.until) * 1000000)::bigint)
  or exists (select from moderation_log l
    where l.account_id = a.id and l.place < (extract(epoch from limited.until) * 1000000)::bigint))`);

/**
 * The place is the time of the message. Each platform is a range of the primary key, so that no batch reads the
 * messages that stay.
 */
const SWEEP_MESSAGES = deletingMessages(`
    select m.account_id, m.platform, m.place
    from unnest('{${PLATFORMS.join()}}'::text[]) of_platform (platform) cross join lateral (
      select account_id, platform, place from platform_chat_messages
      where account_id = $1 and platform = of_platform.platform
        and place < (extract(epoch from $2::timestamptz) * 1000000)::bigint
      order by place limit ${TOGETHER}
    ) m limit ${TOGETHER}`);
const SWEEP_LOG = `
  with gone as (
    delete from moderation_log where account_id = $1 and place in (
      select place from moderation_log
      where account_id = $1 and place < (extract(epoch from $2::timestamptz) * 1000000)::bigint
      order by place limit ${TOGETHER})
    returning 1
  )
  select count(*)::int as count from gone`;

/**
 * Deletes expired chat messages and entries of the moderation log according to each account's `chat_retention_days`;
 * counts of people stay. Returns the number deleted. Source: spec doc1 §8.
 */
export const sweepChat = (db: Database, signal?: AbortSignal): Promise<number> =>
  sweepExpired(db, EXPIRED, (account_id, until) => sweepAccount(db, account_id, until, signal), signal);

async function sweepAccount(db: Database, account_id: string, until: string, signal?: AbortSignal): Promise<number> {
  let all = 0;
  for (const statement of [SWEEP_MESSAGES, SWEEP_LOG]) {
    for (let some = TOGETHER; some === TOGETHER && !signal?.aborted;) {
      some = await db.transaction(async (tx) => {
        const [row] = await tx.query<{ count: number }>(statement, [account_id, until]);
        await tx.query('delete from chat_message_counts where account_id = $1 and count = 0', [account_id]);
        return row!.count;
      });
      all += some;
    }
  }
  return all;
}
