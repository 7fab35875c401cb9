import { moduleFlag } from '../../domain/automation/bot-modules';
import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { ECHO_MS, placesWithBot } from './account-bots';
import { accountFlags } from './account-flags';

/** A live channel in which an account's messages are due. */
export interface TimedPlace {
  account_id: string;
  platform: Platform;
}

interface Turn {
  messages: readonly string[];
  min_chat_lines: number;
  /** Messages that were sent there. */
  sent: number;
  /** Microseconds since 1970; null before the first. */
  sent_micros: number | null;
}

/** Live channels of the account with a bot, while its timed messages are on. */
export async function timedPlaces(db: Pick<Queryable, 'query'>, account_id: string): Promise<TimedPlace[]> {
  const rows = await db.query<TimedPlace & Record<string, unknown>>(
    `select distinct s.account_id, s.platform from channel_status s
       join bot_modules m on m.account_id = s.account_id and m.module_name = 'timed_messages' and m.enabled
     where s.account_id = $1 and s.is_online
     order by s.platform`,
    [account_id],
    'timed-places',
  );
  if (rows.length === 0) return [];
  const flag = moduleFlag('timed_messages');
  if (!(await accountFlags(db, [account_id], [flag]))(flag, account_id)) return [];
  const hasBot = await placesWithBot(db, rows);
  return rows.filter(hasBot);
}

/**
 * Lines of a channel after a time that no bot of this installation wrote. A bot that is the channel itself counts for
 * what it did not send from here; where a platform names no message, that is what follows no send.
 */
const LINES_OF_OTHERS = `
  select 1 as one from platform_chat_messages m
    cross join lateral (select m.content ->> 'platform_user_id' as author, m.content ->> 'channel_id' as channel) line
    cross join lateral (select
      exists (select from bot_connections b where b.platform = m.platform and b.platform_user_id = line.author)
      or exists (select from system_connections s where s.platform = m.platform and s.bot_user_id = line.author) as is_bot
    ) of_bot
  where m.account_id = $1 and m.platform = $2 and m.place > $3
    and not exists (select from chat_sends s where s.account_id = $1 and s.message_id = m.message_id)
    and not (is_bot and (line.author is distinct from line.channel or exists (
      select from chat_sends s where s.account_id = $1 and s.platform = m.platform and s.message_id is null
        and s.text_hash is not null and s.status <> 'refused'
        and s.asked_at between m.created_at - interval '${ECHO_MS} milliseconds' and m.created_at + interval '1 second')))
  limit $4`;

/**
 * The next message of a channel; null without one, while too few lines were written since the last, and when one was
 * sent after `started_ms`, which is when this one was due.
 */
export async function nextMessage(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, started_ms = Infinity }: TimedPlace & { started_ms?: number | undefined },
): Promise<string | null> {
  const [turn] = await db.query<Turn & Record<string, unknown>>(
    `select coalesce(m.config -> 'messages', '[]') as messages, coalesce(t.sent, 0) as sent,
       coalesce((m.config ->> 'min_chat_lines')::int, 0) as min_chat_lines,
       (extract(epoch from t.sent_at) * 1000000)::bigint as sent_micros
     from bot_modules m left join timed_messages t on t.account_id = m.account_id and t.platform = $2
     where m.account_id = $1 and m.module_name = 'timed_messages'`,
    [account_id, platform],
    'timed-turn',
  );
  if (turn === undefined || turn.messages.length === 0) return null;
  if (turn.sent_micros !== null && turn.sent_micros / 1_000 > started_ms) return null;
  if (turn.min_chat_lines > 0 && turn.sent_micros !== null) {
    const values = [account_id, platform, turn.sent_micros, turn.min_chat_lines];
    const lines = await db.query(LINES_OF_OTHERS, values, 'timed-lines');
    if (lines.length < turn.min_chat_lines) return null;
  }
  return turn.messages[turn.sent % turn.messages.length]!;
}

/** Moves the turn of a channel to its next message. */
export const moveTurn = (tx: Queryable, { account_id, platform }: TimedPlace) =>
  tx.query(
    `insert into timed_messages as t (account_id, platform, sent, sent_at) values ($1, $2, 1, clock_timestamp())
     on conflict (account_id, platform) do update set sent = t.sent + 1, sent_at = excluded.sent_at`,
    [account_id, platform],
  );
