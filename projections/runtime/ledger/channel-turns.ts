import {
  type ChannelTransition,
  channelStatusChannel,
  isTransition,
  readTransition,
  type StreamTransition,
} from '../../../domain/history/channel-status';
import { eventsChannel } from '../../../domain/events/events';
import { shownInstant } from '../../../lib/time/instants';
import type { Platform } from '../../../domain/common/vendors';
import type { Queryable } from '../../../engines/postgres/port';
import type { ChannelMessage } from '../../../kernel/projection';

/** Members of an event-log record that marks the begin or the end of a broadcast. */
export interface LoggedTurn {
  account_id: string;
  type: string;
  platform: string;
  raw: string;
  created_at: string;
  trace: string | null;
}

/**
 * Maintains the broadcasts on air, by the platforms' own times: an ended broadcast never resumes, however late its
 * begin arrives. Returns `channel:online` and `channel:offline` for real changes, on the account's events and on its
 * channel status (spec doc3 §6.2).
 */
export async function applyTurns(rows: readonly LoggedTurn[], tx: Queryable): Promise<ChannelMessage[]> {
  const messages: ChannelMessage[] = [];
  for (const row of rows) {
    if (!isTransition(row.type)) continue;
    const turn = readTransition({ type: row.type, raw: row.raw, at: row.created_at });
    const changed = await (turn.online ? goOnline(row, turn, tx) : goOffline(row, turn, tx));
    for (const { broadcast_id, ...kept } of changed) {
      messages.push(...announced(row, { ...kept, broadcast_id: broadcast_id === '' ? null : broadcast_id }, turn));
    }
  }
  return messages;
}

type Changed = Pick<ChannelTransition, 'channel_id' | 'broadcast_id' | 'title' | 'category' | 'started_at'> &
  Record<string, unknown>;
const CHANGED = 'channel_id, broadcast_id, stream_title as title, category, started_at';

/** Starts a broadcast. Except on YouTube an account has one broadcast on air per platform, so an earlier one ends. */
async function goOnline(
  { account_id, platform }: LoggedTurn,
  turn: StreamTransition,
  tx: Queryable,
): Promise<Changed[]> {
  const broadcast_id = turn.broadcast_id ?? `at-${Date.parse(turn.at)}`;
  const rows = await tx.query<Changed & { is_online: boolean }>(
    `insert into channel_status as s (account_id, platform, broadcast_id, channel_id, is_online, stream_title, category,
       live_chat_id, started_at, updated_at)
     select $1::uuid, $2, $3, $4, not exists (
         select from channel_status o
         where o.account_id = $1::uuid and o.platform = $2 and o.broadcast_id = '' and o.ended_at >= $8::timestamptz),
       $5, $6, $7, $8::timestamptz, $8::timestamptz
     on conflict (account_id, platform, broadcast_id) do update set started_at = excluded.started_at,
       channel_id = excluded.channel_id, stream_title = excluded.stream_title, category = excluded.category,
       live_chat_id = excluded.live_chat_id
       where s.started_at is null
     returning ${CHANGED}, is_online`,
    [account_id, platform, broadcast_id, turn.channel_id, turn.title, turn.category, turn.live_chat_id, turn.at],
    'channel-status-online',
  );
  const online = rows.filter(({ is_online }) => is_online);
  if (online.length > 0 && platform !== 'youtube') {
    await tx.query(
      `update channel_status set is_online = false, ended_at = $4, updated_at = $4
       where account_id = $1 and platform = $2 and broadcast_id <> $3 and is_online and started_at <= $4`,
      [account_id, platform, broadcast_id, turn.at],
      'channel-status-follows',
    );
  }
  return online;
}

/** Ends a broadcast. Except on YouTube it also ends every broadcast that began earlier. */
async function goOffline(
  { account_id, platform }: LoggedTurn,
  turn: StreamTransition,
  tx: Queryable,
): Promise<Changed[]> {
  const ended = await tx.query<Changed>(
    `update channel_status set is_online = false, ended_at = $4, updated_at = $4
     where account_id = $1 and platform = $2 and is_online
       and (broadcast_id = $3 or ($3::text is null or platform <> 'youtube') and started_at <= $4)
     returning ${CHANGED}`,
    [account_id, platform, turn.broadcast_id, turn.at],
    'channel-status-offline',
  );
  // The begin may arrive later: this row marks the broadcast as ended.
  await tx.query(
    `insert into channel_status as s (account_id, platform, broadcast_id, channel_id, is_online, ended_at, updated_at)
     values ($1, $2, $3, $4, false, $5, $5)
     on conflict (account_id, platform, broadcast_id) do update
       set ended_at = greatest(s.ended_at, excluded.ended_at), updated_at = greatest(s.updated_at, excluded.updated_at)
       where not s.is_online`,
    [account_id, platform, turn.broadcast_id ?? '', turn.channel_id, turn.at],
    'channel-status-ended',
  );
  return ended;
}

function announced(row: LoggedTurn, changed: Changed, { online, at }: StreamTransition): ChannelMessage[] {
  const payload: ChannelTransition = {
    type: online ? 'channel:online' : 'channel:offline',
    platform: row.platform as Platform,
    channel_id: changed.channel_id,
    broadcast_id: changed.broadcast_id,
    title: changed.title,
    category: changed.category,
    started_at: changed.started_at === null ? null : shownInstant(changed.started_at),
    ended_at: online ? null : shownInstant(at),
  };
  const { trace } = row;
  const event_type = payload.type;
  return [
    { channel: eventsChannel(row.account_id), event_type, data: JSON.stringify({ ...payload, payload }), trace },
    { channel: channelStatusChannel(row.account_id), event_type, data: JSON.stringify(payload), trace },
  ];
}
