import type { SessionFigures } from '../../domain/history/session-figures';
import type { Database } from '../../engines/postgres/port';
import { AT_A_TIME, beginSessions, claimBroadcasts, mergeSessions } from './session-claims';
import { correctLate, correctResumed } from './session-corrections';
import { broadcastsOf, type Counting, finalize, type Session, streamsOf } from './session-ends';
import { countSession } from './session-figures';
import { Singly } from './singly';

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

export interface SessionsParts extends Counting {
  /** Announces new figures of a live session, or of one that a late broadcast changed. */
  announce(session: AnnouncedSession, figures: SessionFigures): Promise<void>;
}

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
  await correctLate(parts, isOver);
  await correctResumed(parts, isOver);
  return begun + finalized;
}

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

/**
 * Drops figures of sessions that are not live any more, and claims of dissolved accounts. Returns their number.
 */
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
