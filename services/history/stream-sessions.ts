import { v5 } from 'uuid';
import { actAsService } from '../../app/service-calls';
import type { SessionFigures } from '../../domain/history/session-figures';
import { type SessionStream, streamSession, streamSessionStream } from '../../domain/history/stream-sessions';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';
import { PLATFORMS } from '../../domain/common/vendors';
import { shownInstant } from '../../lib/time/instants';
import { type Bots, bridgedStreams, countRows, countSession, type CountedStream } from './session-figures';

/** Service name recorded with sessions' events. */
const SERVICE = 'history';
/** Namespace of the ids of sessions. */
const NAMESPACE = '3f4d2d0a-6f8f-5c7e-9a53-1f0f5a6f0a11';
/** Days back that are searched for new broadcasts. */
const DAYS = 7;
/** Broadcasts and sessions that one sweep takes. */
const AT_A_TIME = 500;
/** Least time between two counts, and so two messages, of a live session; a count may use a twentieth of the time. */
const LIVE_MS = 10_000;
const SHARE = 20;
/** Milliseconds of counting in one sweep. */
const BUDGET_MS = 10_000;

export interface SessionsParts {
  db: Database;
  events: EventStore;
  /** Longest gap between two broadcasts of one session, in milliseconds. */
  grace_ms: number;
  bots: Bots;
  /** Announces new figures of a live session. */
  announce(
    session: { id: string; account_id: string; is_first_of_minute: boolean },
    figures: SessionFigures,
  ): Promise<void>;
}

type Claim = SessionStream & { account_id: string; ended_at: string | null };
type Session = Record<string, unknown> & { id: string; account_id: string };

const KEYS = 'account_id, platform, broadcast_id';
const OF_KEY = 'account_id = $1 and platform = $2 and broadcast_id = $3';
const STREAM = `o.account_id, o.platform, o.channel_id as platform_channel_id, o.broadcast_id, o.stream_title as title,
  o.category, o.started_at, o.ended_at`;

/** True where an event that the account did not emit itself (ids of versions 5 and 8) reports the broadcast. */
const REPORTED = `exists (select from platform_event_logs e
  where e.account_id = o.account_id and e.platform = o.platform
    and get_byte(uuid_send(e.id), 6) >> 4 not in (5, 8)
    and (e.type = o.platform || ':stream_online'
        and e.created_at between o.started_at - interval '5 minutes' and o.started_at + interval '5 minutes'
      or e.type = o.platform || ':stream_offline'
        and e.created_at between o.ended_at - interval '5 minutes' and o.ended_at + interval '5 minutes'))`;

/** Sessions of an account begin with the id of their first broadcast. */
const sessionIdOf = ({ account_id, platform, broadcast_id }: Omit<Claim, 'ended_at'>): string =>
  v5(JSON.stringify([account_id, platform, broadcast_id]), NAMESPACE);

/**
 * Begins sessions for new broadcasts, finalizes those whose broadcasts have ended longer ago than the grace, and counts
 * live ones. Idempotent, and complete after a crash: the session of a broadcast is stored before its event.
 * @returns the number of sessions that began or were finalized
 */
export async function sweepSessions(parts: SessionsParts, signal: AbortSignal): Promise<number> {
  const singly = new Singly();
  await claimBroadcasts(parts);
  const begun = await beginSessions(parts, singly);
  const until = performance.now() + BUDGET_MS;
  const isOver = () => signal.aborted || performance.now() > until;
  const finalized = await finalizeSessions(parts, singly, isOver);
  await countLive(parts, singly, isOver);
  singly.end();
  await correctSessions(parts, 'quarter', signal);
  return begun + finalized;
}

/** Runs the work of each session by itself: the failure of one delays no other, and is thrown at the end. */
class Singly {
  private readonly failures: unknown[] = [];

  /** Number of sessions whose work returned true. */
  async each<Item>(items: readonly Item[], isOver: () => boolean, work: (item: Item) => Promise<boolean>) {
    let done = 0;
    for (const item of items) {
      if (isOver()) break;
      try {
        done += Number(await work(item));
      } catch (error) {
        this.failures.push(error);
      }
    }
    return done;
  }

  /** @throws the first failure */
  end(): void {
    if (this.failures.length > 0) throw this.failures[0];
  }
}
const never = (): boolean => false;

/**
 * Decides the session of each new broadcast of the account's own channels that its platform reported, since an account
 * may emit turns: an overlapping session of the account, or a new one.
 */
async function claimBroadcasts({ db, grace_ms }: SessionsParts): Promise<void> {
  const found = await db.query<Claim & Record<string, unknown>>(
    `select ${STREAM} from channel_status o
     where o.updated_at > now() - interval '${DAYS} days' and o.started_at is not null and o.broadcast_id <> ''
       and o.platform = any($1) and exists (select from channel_connections n where n.account_id = o.account_id
         and n.platform = o.platform and n.platform_channel_id = o.channel_id)
       and not exists (select from session_claims c where c.account_id = o.account_id and c.platform = o.platform
         and c.broadcast_id = o.broadcast_id)
       and ${REPORTED}
     order by o.started_at, o.account_id, o.platform, o.broadcast_id limit ${AT_A_TIME}`,
    [PLATFORMS],
    'broadcasts-without-session',
  );
  for (const stream of found) {
    await db.query(
      `insert into session_claims (${KEYS}, session_id)
       select $1::uuid, $2, $3, coalesce((
         select c.session_id from session_claims c join channel_status o using (${KEYS})
         where c.account_id = $1::uuid and o.started_at <= coalesce($5::timestamptz, now()) + $7 * interval '1 ms'
           and case when o.is_online then 'infinity' else coalesce(o.ended_at, o.updated_at) end
             >= $4::timestamptz - $7 * interval '1 ms'
         order by o.started_at, c.session_id limit 1), $6::uuid)
       on conflict do nothing`,
      [
        ...[stream.account_id, stream.platform, stream.broadcast_id, stream.started_at, stream.ended_at],
        ...[sessionIdOf(stream), grace_ms],
      ],
      'claim-broadcast',
    );
  }
}

/** Appends the events of claimed broadcasts; returns the number of sessions begun. */
async function beginSessions({ db, events }: SessionsParts, singly: Singly): Promise<number> {
  const claims = await db.query<Claim & { session_id: string } & Record<string, unknown>>(
    `select c.session_id, ${STREAM} from session_claims c join channel_status o using (${KEYS})
     where not c.is_begun order by o.started_at limit ${AT_A_TIME}`,
    [],
    'sessions-to-begin',
  );
  const act = actAsService(SERVICE, events);
  return singly.each(claims, never, async ({ session_id, account_id, ended_at: _ended_at, ...row }) => {
    const stream = { ...row, started_at: shownInstant(row.started_at) };
    const key = [account_id, stream.platform, stream.broadcast_id];
    const own_id = sessionIdOf({ ...stream, account_id });
    const of_session = streamSessionStream(session_id);
    const is_first = session_id === own_id;
    try {
      if (is_first)
        await act(streamSession, of_session, { type: 'stream_session:begin', session_id, account_id, stream });
      else await act(streamSession, of_session, { type: 'stream_session:add_stream', stream });
    } catch (error) {
      if (!isDeleted(error)) throw error;
      await db.query(`update session_claims set session_id = $4 where ${OF_KEY}`, [...key, own_id], 'claim-again');
      return false;
    }
    await db.query(`update session_claims set is_begun = true where ${OF_KEY}`, key, 'session-begun');
    return is_first;
  });
}

/** Whether the session's report was deleted: a broadcast that is found later has a session of its own. */
const isDeleted = (error: unknown): boolean => error instanceof DomainError && error.reason === 'REPORT_NOT_FOUND';

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
    await finalize(parts, session);
    return true;
  });
}

async function finalize(parts: Counting, { id, account_id }: Session): Promise<void> {
  const { db, events, bots } = parts;
  const streams = await streamsOf(parts, id);
  const ended_at = lastEnd(streams);
  // A broadcast that looks had ended is on air again.
  if (ended_at === null) return;
  const figures = await countSession(db, account_id, streams, ended_at, bots);
  const command = { type: 'stream_session:finalize' as const, ended_at, figures };
  await actAsService(SERVICE, events)(streamSession, streamSessionStream(id), command).catch((error: unknown) => {
    if (!isDeleted(error)) throw error;
  });
  await db.query('delete from live_session_figures where session_id = $1', [id], 'session-figures-end');
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
  const broadcasts = await db.query<CountedStream & Record<string, unknown>>(
    `select o.platform, o.channel_id as platform_channel_id, o.broadcast_id, o.stream_title as title, o.category,
       o.started_at, array[o.broadcast_id] as broadcast_ids,
       array_remove(array[o.live_chat_id], null) as live_chat_ids,
       case when o.is_online then null else coalesce(o.ended_at, o.updated_at) end as ended_at
     from ${broadcastsOf('$1')} where o.started_at is not null order by o.started_at, o.platform, o.broadcast_id`,
    [session_id],
    'session-streams',
  );
  return bridgedStreams(broadcasts, grace_ms);
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
    await announce(session, figures);
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
  return figures.length + claims.length;
}
