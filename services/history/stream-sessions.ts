import { actAsService } from '../../app/service-calls';
import type { SessionFigures } from '../../domain/history/session-figures';
import { type StreamSessionEvent, streamSession, streamSessionStream } from '../../domain/history/stream-sessions';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import { shownInstant } from '../../lib/time/instants';
import { AT_A_TIME, beginSessions, claimBroadcasts, isDeleted, KEYS, mergeSessions, SERVICE } from './session-claims';
import { Singly } from './singly';
import { type Bots, bridgedStreams, countRows, countSession, type CountedStream } from './session-figures';

/** Least time between two counts, and so two messages, of a live session; a count may use a twentieth of the time. */
const LIVE_MS = 10_000;
const SHARE = 20;
/** Milliseconds of counting in one sweep. */
const BUDGET_MS = 10_000;

export interface AnnouncedSession {
  id: string;
  account_id: string;
  is_first_of_minute: boolean;
  /** Null while the session is live. */
  ended_at: string | null;
}

export interface SessionsParts {
  db: Database;
  events: EventStore;
  /** Longest gap between two broadcasts of one session, in milliseconds. */
  grace_ms: number;
  bots: Bots;
  /** Announces new figures of a live session, or of one that a late broadcast changed. */
  announce(session: AnnouncedSession, figures: SessionFigures): Promise<void>;
}

type Session = Record<string, unknown> & { id: string; account_id: string };

/**
 * Begins sessions for new broadcasts, finalizes those whose broadcasts have ended longer ago than the grace, and counts
 * live ones. Idempotent, and complete after a crash: the session of a broadcast is stored before its event.
 * @returns the number of sessions that began or were finalized
 */
export async function sweepSessions(parts: SessionsParts, signal: AbortSignal): Promise<number> {
  const singly = new Singly();
  await claimBroadcasts(parts);
  let begun = await beginSessions(parts, singly);
  // The broadcasts of merged sessions are added to those that stay.
  if ((await mergeSessions(parts, singly)) > 0) begun += await beginSessions(parts, singly);
  const until = performance.now() + BUDGET_MS;
  const isOver = () => signal.aborted || performance.now() > until;
  const finalized = await finalizeSessions(parts, singly, isOver);
  await countLive(parts, singly, isOver);
  singly.end();
  await correctSessions(parts, 'quarter', signal);
  return begun + finalized;
}

/** Broadcasts of the session `s`: those claimed for it, and after a loss of claims those of its events. */
const broadcastsOf = (session: string) => `(
  select ${KEYS} from session_claims where session_id = ${session}
  union select ${KEYS} from session_streams where session_id = ${session}) x join channel_status o using (${KEYS})`;
const ON_AIR = `exists (
  select from ${broadcastsOf('s.id')}
  where o.is_online or coalesce(o.ended_at, o.updated_at) > now() - $1 * interval '1 ms')`;

async function finalizeSessions(parts: SessionsParts, singly: Singly, isOver: () => boolean): Promise<number> {
  const { db, grace_ms } = parts;
  const ended = await db.query<Session>(
    `select s.id, s.account_id from stream_sessions s where s.is_live and not ${ON_AIR}
       and not exists (select from live_session_figures f
         where f.session_id = s.id and f.counted_at > now() - interval '${LIVE_MS} ms')
     order by s.started_at limit ${AT_A_TIME}`,
    [grace_ms],
    'sessions-to-finalize',
  );
  return singly.each(ended, isOver, async (session) => {
    const stored = await finalize(parts, session);
    // The projection announces the first end.
    if (stored?.type === 'stream_session:corrected') {
      const { ended_at, figures } = stored;
      await parts.announce({ ...session, is_first_of_minute: false, ended_at }, figures);
    }
    return true;
  });
}

type Finalized = Extract<
  StreamSessionEvent,
  { type: 'stream_session:finalized' } | { type: 'stream_session:corrected' }
>;

/** @returns the stored event; undefined where nothing changed */
async function finalize(parts: Counting, { id, account_id }: Session): Promise<Finalized | undefined> {
  const { db, events, bots } = parts;
  const streams = await streamsOf(parts, id);
  const ended_at = lastEnd(streams);
  // A broadcast that looks had ended is on air again.
  if (ended_at === null) return undefined;
  const figures = await countSession(db, account_id, streams, ended_at, bots);
  const command = { type: 'stream_session:finalize' as const, ended_at, figures };
  const acted = await actAsService(SERVICE, events)(streamSession, streamSessionStream(id), command).catch(
    (error: unknown) => {
      if (!isDeleted(error)) throw error;
      return { events: [] as StreamSessionEvent[] };
    },
  );
  await db.query('delete from live_session_figures where session_id = $1', [id], 'session-figures-end');
  const [stored] = acted.events;
  return stored !== undefined && 'figures' in stored ? stored : undefined;
}

type Counting = Pick<SessionsParts, 'db' | 'events' | 'grace_ms' | 'bots'>;

/** Time at which the last stream ended; null while a stream is on air. */
function lastEnd(streams: readonly CountedStream[]): string | null {
  let last = '';
  for (const { ended_at } of streams) {
    if (ended_at === null) return null;
    if (last === '' || Date.parse(ended_at) > Date.parse(last)) last = ended_at;
  }
  return last === '' ? null : shownInstant(last);
}

/** The streams of a session, oldest first; each has ended unless it is on air. */
async function streamsOf(
  { db, grace_ms }: Pick<SessionsParts, 'db' | 'grace_ms'>,
  session_id: string,
): Promise<CountedStream[]> {
  const rows = await db.query<CountedStream & { claimed_grace_ms: number | null } & Record<string, unknown>>(
    `select o.platform, o.channel_id as platform_channel_id, o.broadcast_id, o.stream_title as title, o.category,
       o.started_at, array[o.broadcast_id] as broadcast_ids,
       array_remove(array[o.live_chat_id], null) as live_chat_ids,
       case when o.is_online then null else coalesce(o.ended_at, o.updated_at) end as ended_at,
       (select max(grace_ms) from session_claims where session_id = $1) as claimed_grace_ms
     from ${broadcastsOf('$1')} where o.started_at is not null order by o.started_at, o.platform, o.broadcast_id`,
    [session_id],
    'session-streams',
  );
  const broadcasts = rows.map(({ claimed_grace_ms: _grace, ...broadcast }) => broadcast);
  return bridgedStreams(broadcasts, rows[0]?.claimed_grace_ms ?? grace_ms);
}

/** Counts the live sessions whose figures are due, and announces the figures. */
async function countLive(parts: SessionsParts, singly: Singly, isOver: () => boolean): Promise<void> {
  const { db, grace_ms, announce, bots } = parts;
  const live = await db.query<Session & { is_first_of_minute: boolean }>(
    `select s.id, s.account_id, date_trunc('minute', f.counted_at) is distinct from date_trunc('minute', now())
       as is_first_of_minute
     from stream_sessions s left join live_session_figures f on f.session_id = s.id
     where s.is_live and (f.next_at is null or f.next_at <= now()) and ${ON_AIR}
     order by f.next_at nulls first limit ${AT_A_TIME}`,
    [grace_ms],
    'live-sessions',
  );
  await singly.each(live, isOver, async (session) => {
    const { id, account_id } = session;
    const began = performance.now();
    const streams = await streamsOf(parts, id);
    const figures = await countSession(db, account_id, streams, new Date().toISOString(), bots);
    const pause_ms = Math.max(LIVE_MS, (performance.now() - began) * SHARE);
    await db.query(
      `insert into live_session_figures (session_id, account_id, counted_at, next_at, duration_secs, peak_viewers,
         avg_viewers, total_messages, unique_chatters, new_followers, figures)
       select $1, $2, now(), now() + $3 * interval '1 ms', f.duration_secs, f.peak_viewers, f.avg_viewers,
         f.total_messages, f.unique_chatters, f.new_followers, $4::jsonb
       from jsonb_to_record($4::jsonb) as f (duration_secs bigint, peak_viewers bigint, avg_viewers double precision,
         total_messages bigint, unique_chatters bigint, new_followers bigint)
       on conflict (session_id) do update set counted_at = excluded.counted_at, next_at = excluded.next_at,
         duration_secs = excluded.duration_secs, peak_viewers = excluded.peak_viewers,
         avg_viewers = excluded.avg_viewers, total_messages = excluded.total_messages,
         unique_chatters = excluded.unique_chatters, new_followers = excluded.new_followers,
         figures = excluded.figures`,
      [id, account_id, pause_ms, JSON.stringify(figures)],
      'live-session-figures',
    );
    await announce({ ...session, ended_at: null }, figures);
    return true;
  });
}

/** Age of the sessions that are checked, since their last count, and the longest time of the checks. */
const CHECKS = {
  quarter: { age: '15 minutes', most_ms: 1_000 },
  day: { age: '1 day', most_ms: Infinity },
} as const;

/** Finalized sessions that were counted, or whose resumed broadcast has ended, within $1; newest count first. */
const TO_CHECK = `
  select id, account_id, (figures -> 'rows_counted')::bigint as rows_counted, ended_at, counted_at
  from stream_sessions where not is_live and counted_at > now() - $1::interval
  union
  select s.id, s.account_id, (s.figures -> 'rows_counted')::bigint, s.ended_at, s.counted_at
  from channel_status o join session_claims c using (${KEYS}) join stream_sessions s on s.id = c.session_id
  where not o.is_online and o.updated_at > now() - $1::interval and not s.is_live and o.ended_at > s.ended_at
  order by counted_at desc`;

/**
 * Counts finalized sessions again where rows came late, or where a broadcast resumed and has ended. Fewer rows correct
 * nothing: retention takes them.
 * @returns the number of corrected sessions
 */
export async function correctSessions(
  parts: Counting,
  check: keyof typeof CHECKS,
  signal: AbortSignal,
): Promise<number> {
  const { db } = parts;
  const { age, most_ms } = CHECKS[check];
  const until = performance.now() + most_ms;
  const recent = await db.query<Session & { rows_counted: number; ended_at: string }>(
    TO_CHECK,
    [age],
    'sessions-to-check',
  );
  const singly = new Singly();
  const corrected = await singly.each(
    recent,
    () => signal.aborted || performance.now() > until,
    async (session) => {
      const streams = await streamsOf(parts, session.id);
      const ended_at = lastEnd(streams);
      if (ended_at === null) return false;
      const is_longer = Date.parse(ended_at) > Date.parse(session.ended_at);
      const rows = await countRows(db, session.account_id, streams, ended_at);
      if (rows <= session.rows_counted && !is_longer) return false;
      await finalize(parts, session);
      return true;
    },
  );
  singly.end();
  return corrected;
}

/** Drops figures of sessions that are not live any more, and claims of dissolved accounts. Returns their number. */
export async function sweepSessionRows(db: Database): Promise<number> {
  const figures = await db.query(
    `delete from live_session_figures f
     where not exists (select from stream_sessions s where s.id = f.session_id and s.is_live) returning 1 as one`,
  );
  const claims = await db.query(
    `delete from session_claims c
     where exists (select from dissolved_accounts a where a.account_id = c.account_id) returning 1 as one`,
  );
  const merges = await db.query(
    `delete from pending_session_merges m
     where exists (select from dissolved_accounts a where a.account_id = m.account_id) returning 1 as one`,
  );
  return figures.length + claims.length + merges.length;
}
