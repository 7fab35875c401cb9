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
  reported_at?: string;
  seen_at?: string;
}

/**
 * Maintains the broadcasts on air, by the platforms' own times, independently of the order in which records arrive.
 * - The reported end of a broadcast is final.
 * - A reported end without a broadcast ends those that had begun before, except those whose begin was reported later.
 * - An end that follows from a look is provisional: the broadcast resumes when it is seen or reported again.
 * - A begin that arrives after a look at a later broadcast has ended, as provisionally as by a look.
 * - Records of earlier releases count as reports that were sent when their transition occurred.
 *
 * @returns `channel:online` and `channel:offline` for real changes, on the account's events and on its channel status
 * (spec doc3 §6.2)
 */
export async function applyTurns(rows: readonly LoggedTurn[], tx: Queryable): Promise<ChannelMessage[]> {
  const messages: ChannelMessage[] = [];
  for (const row of rows) {
    if (!isTransition(row.type)) continue;
    const turn = readTransition({ type: row.type, raw: row.raw, at: row.created_at });
    const { online, ended } = turn.online
      ? await goOnline(row, turn, tx)
      : { online: [], ended: await goOffline(row, turn, tx) };
    for (const one of online) messages.push(...announced(row, one, { ...turn, online: true }));
    for (const one of ended) messages.push(...announced(row, one, { ...turn, online: false }));
  }
  return messages;
}

/** Changes to announce. */
interface Turned {
  online: Changed[];
  ended: Changed[];
}
type Changed = Pick<ChannelTransition, 'channel_id' | 'broadcast_id' | 'title' | 'category' | 'started_at'> &
  Record<string, unknown>;
const CHANGED = 'channel_id, broadcast_id, stream_title as title, category, started_at';

/** Row of the newest reported end without a broadcast; $1 is the account, $2 the platform. */
const CHANNEL_END = `channel_status o
  where o.account_id = $1::uuid and o.platform = $2 and o.broadcast_id = ''`;
/** Rows of broadcasts whose begin was reported: it ends all earlier ones, except on YouTube. */
const SUCCESSORS = `channel_status o
  where o.account_id = $1::uuid and o.platform = $2 and o.platform <> 'youtube' and o.reported_at is not null`;

/** Rows of broadcasts that only looks have found on air: they end all earlier ones provisionally, except on YouTube. */
const FOUND = `channel_status o
  where o.account_id = $1::uuid and o.platform = $2 and o.platform <> 'youtube' and o.is_online
    and o.known_by = 'look'`;

/** Starts a broadcast. Except on YouTube an account has one broadcast on air per platform, so an earlier one ends. */
async function goOnline(row: LoggedTurn, turn: StreamTransition, tx: Queryable): Promise<Turned> {
  const { account_id, platform, reported_at = null, seen_at } = row;
  const broadcast_id = turn.broadcast_id ?? `at-${Date.parse(turn.at)}`;
  const known_by = knownBy(row);
  const has_source = reported_at !== null || seen_at !== undefined;
  const rows = await tx.query<Changed & { is_online: boolean }>(
    `insert into channel_status as s (account_id, platform, broadcast_id, channel_id, is_online, stream_title, category,
       live_chat_id, started_at, ended_at, updated_at, reported_at, known_by)
     select $1::uuid, $2, $3, $4, coalesce(next_at, over_at, found_at) is null, $5, $6, $7, $8::timestamptz,
       case when $11 then least(next_at, over_at, found_at) end,
       coalesce(case when $11 then least(next_at, over_at, found_at) end, $8), $9::timestamptz,
       case when $11 and over_at is not null then 'channel' when next_at is null and found_at is not null then 'look'
         else $10 end
     from (select
         (select o.ended_at from ${CHANNEL_END} and o.ended_at >= greatest($8::timestamptz, $9)) as over_at,
         (select min(o.started_at) from ${SUCCESSORS} and $11::boolean and o.started_at > $8) as next_at,
         (select min(o.started_at) from ${FOUND} and $11::boolean and o.started_at > $8) as found_at) known
     on conflict (account_id, platform, broadcast_id) do update set started_at = excluded.started_at,
       channel_id = excluded.channel_id, stream_title = excluded.stream_title, category = excluded.category,
       live_chat_id = excluded.live_chat_id, reported_at = excluded.reported_at
       where s.started_at is null
     returning ${CHANGED}, is_online`,
    [
      ...[account_id, platform, broadcast_id, turn.channel_id, turn.title, turn.category, turn.live_chat_id, turn.at],
      ...[reported_at, known_by, has_source],
    ],
    'channel-status-online',
  );
  const began = rows.filter(({ is_online }) => is_online);
  const online = rows.length > 0 ? began : await goOnlineAgain(row, broadcast_id, tx);
  const is_late = rows.length > 0 && online.length === 0 && reported_at !== null;
  if (platform === 'youtube' || (online.length === 0 && !is_late)) return { online, ended: [] };
  const ended = await tx.query<Changed>(
    `update channel_status set is_online = false, ended_at = $4, updated_at = $4, known_by = $5
     where account_id = $1 and platform = $2 and broadcast_id <> $3 and is_online and started_at <= $4
     returning ${CHANGED}`,
    [account_id, platform, broadcast_id, turn.at, known_by],
    'channel-status-follows',
  );
  // The begin of the next broadcast implies the end of the one before.
  return online.length > 0 ? { online, ended: [] } : { online, ended };
}

/** Resumes a broadcast that has ended provisionally or before this report; stores the report of one that is on air. */
async function goOnlineAgain(row: LoggedTurn, broadcast_id: string, tx: Queryable): Promise<Changed[]> {
  const { account_id, platform, reported_at = null, seen_at = null } = row;
  if (reported_at === null && seen_at === null) return [];
  const of_broadcast = [account_id, platform, broadcast_id];
  const resumed = await tx.query<Changed>(
    `update channel_status s set is_online = true, ended_at = null, known_by = $6,
       updated_at = coalesce($4::timestamptz, $5), reported_at = greatest(s.reported_at, $4)
     where account_id = $1 and platform = $2 and broadcast_id = $3 and not is_online and started_at is not null
       and (known_by = 'look' or known_by = 'channel' and $4::timestamptz is not null)
       and (ended_at is null or ended_at < coalesce($4::timestamptz, $5))
       and not exists (select from ${CHANNEL_END} and o.ended_at >= greatest(s.started_at, s.reported_at, $4))
       and not exists (select from ${SUCCESSORS} and o.started_at > s.started_at)
     returning ${CHANGED}`,
    [...of_broadcast, reported_at, seen_at, knownBy(row)],
    'channel-status-again',
  );
  if (resumed.length === 0 && reported_at !== null) {
    await tx.query(
      `update channel_status set known_by = 'report', reported_at = greatest(reported_at, $4)
       where account_id = $1 and platform = $2 and broadcast_id = $3 and is_online`,
      [...of_broadcast, reported_at],
      'channel-status-reported',
    );
  }
  return resumed;
}

/** Ends the named broadcast, or without a name those that had begun. Ends of earlier releases do both. */
async function goOffline(row: LoggedTurn, turn: StreamTransition, tx: Queryable): Promise<Changed[]> {
  const { account_id, platform, seen_at, reported_at = null } = row;
  if (seen_at !== undefined) return turn.broadcast_id === null ? [] : notSeen(row, turn, tx);
  const ended = await tx.query<Changed>(
    `update channel_status set is_online = false, ended_at = $4, updated_at = $4,
       known_by = case when $3::text is null and $5::timestamptz is not null then 'channel' else 'report' end
     where account_id = $1 and platform = $2 and is_online
       and (broadcast_id = $3 or greatest(started_at, reported_at) <= $4
         and ($3::text is null or platform <> 'youtube' and $5::timestamptz is null))
     returning ${CHANGED}`,
    [account_id, platform, turn.broadcast_id, turn.at, reported_at],
    'channel-status-offline',
  );
  // The begin may arrive later: this row marks the broadcast as ended.
  await tx.query(
    `insert into channel_status as s (account_id, platform, broadcast_id, channel_id, is_online, ended_at, updated_at)
     values ($1, $2, $3, $4, false, $5, $5)
     on conflict (account_id, platform, broadcast_id) do update set known_by = 'report',
       ended_at = case s.known_by when 'report' then greatest(s.ended_at, excluded.ended_at) else excluded.ended_at end,
       updated_at = greatest(s.updated_at, excluded.updated_at)
       where not s.is_online`,
    [account_id, platform, turn.broadcast_id ?? '', turn.channel_id, turn.at],
    'channel-status-ended',
  );
  if (turn.broadcast_id === null && reported_at !== null) await confirmEnd(row, turn, tx);
  return ended;
}

/** Gives the newest broadcast that looks have ended the end that was reported of its channel. */
async function confirmEnd({ account_id, platform }: LoggedTurn, { at }: StreamTransition, tx: Queryable) {
  await tx.query(
    `update channel_status s set ended_at = $3, updated_at = $3, known_by = 'channel'
     where account_id = $1 and platform = $2 and not is_online and known_by = 'look'
       and greatest(started_at, reported_at) <= $3
       and not exists (select from channel_status o
         where o.account_id = $1 and o.platform = $2 and o.started_at > s.started_at)`,
    [account_id, platform, at],
    'channel-status-confirmed',
  );
}

/** Ends a broadcast provisionally, unless it was seen or reported after the look. */
function notSeen({ account_id, platform, seen_at }: LoggedTurn, turn: StreamTransition, tx: Queryable) {
  return tx.query<Changed>(
    `update channel_status set is_online = false, ended_at = $4, updated_at = $4, known_by = 'look'
     where account_id = $1 and platform = $2 and broadcast_id = $3 and is_online
       and greatest(updated_at, reported_at) <= $5
     returning ${CHANGED}`,
    [account_id, platform, turn.broadcast_id, turn.at, seen_at],
    'channel-status-not-seen',
  );
}

const knownBy = ({ seen_at }: LoggedTurn): 'report' | 'look' => (seen_at === undefined ? 'report' : 'look');

function announced(row: LoggedTurn, changed: Changed, { online, at }: StreamTransition): ChannelMessage[] {
  const { broadcast_id } = changed;
  const payload: ChannelTransition = {
    type: online ? 'channel:online' : 'channel:offline',
    platform: row.platform as Platform,
    channel_id: changed.channel_id,
    broadcast_id: broadcast_id === '' ? null : broadcast_id,
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
