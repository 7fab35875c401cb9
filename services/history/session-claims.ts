import { v5 } from 'uuid';
import { actAsService } from '../../app/service-calls';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { newEvents } from '../../app/write-path/event-ids';
import { PLATFORMS } from '../../domain/common/vendors';
import {
  type SessionStream,
  type StreamSession,
  type StreamSessionEvent,
  streamSession,
  streamSessionStream,
} from '../../domain/history/stream-sessions';
import type { EventStore } from '../../engines/event-store/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';
import { shownInstant } from '../../lib/time/instants';
import type { Singly } from './singly';

/** Service name recorded with sessions' events. */
export const SERVICE = 'history';
/** Namespace of the ids of sessions. */
const NAMESPACE = '3f4d2d0a-6f8f-5c7e-9a53-1f0f5a6f0a11';
/** Days back that are searched for new broadcasts. */
const DAYS = 7;
/** Broadcasts and sessions that one sweep takes. */
export const AT_A_TIME = 500;

export interface ClaimParts {
  db: Database;
  events: EventStore;
  /** Longest gap between two broadcasts of one session, in milliseconds. */
  grace_ms: number;
}

type Broadcast = SessionStream & { account_id: string };
type Found = Broadcast & { ends_at: string; lasts_until: string; grace_ms: number | null };

export const KEYS = 'account_id, platform, broadcast_id';
const OF_KEY = 'account_id = $1 and platform = $2 and broadcast_id = $3';
const STREAM = `o.account_id, o.platform, o.channel_id as platform_channel_id, o.broadcast_id, o.stream_title as title,
  o.category, o.started_at`;
/** End of a broadcast `o`; infinity while it is on air. */
const ENDS = `case when o.is_online then 'infinity' else coalesce(o.ended_at, o.updated_at) end`;
/**
 * Time until which a broadcast `o` certainly lasts. The record of the next begin may come before the record of the end;
 * the end is then not known yet, except that on YouTube broadcasts overlap.
 */
const LASTS = `case when o.is_online and o.platform <> 'youtube' and exists (select from channel_status n
  where n.account_id = o.account_id and n.platform = o.platform and n.started_at > o.started_at)
  then o.started_at else ${ENDS} end`;

/** True where an event that the account did not emit itself (ids of versions 5 and 8) reports the begin. */
const REPORTED = `exists (select from platform_event_logs e
  where e.account_id = o.account_id and e.platform = o.platform
    and get_byte(uuid_send(e.id), 6) >> 4 not in (5, 8)
    and e.type = o.platform || ':stream_online'
    and e.created_at between o.started_at - interval '5 minutes' and o.started_at + interval '5 minutes')`;

/** Sessions of an account begin with the id of their first broadcast. */
const sessionIdOf = ({
  account_id,
  platform,
  broadcast_id,
}: Pick<Broadcast, 'account_id' | 'platform' | 'broadcast_id'>) =>
  v5(JSON.stringify([account_id, platform, broadcast_id]), NAMESPACE);

/**
 * Decides the session of each new broadcast of the account's own channels that its platform reported, since an account
 * may emit turns: the oldest session of the account that it touches, or a new one. A broadcast whose times changed is
 * decided again. Other sessions that an ended broadcast touches are to be merged into the oldest.
 */
export async function claimBroadcasts({ db, grace_ms }: ClaimParts): Promise<void> {
  const found = await db.query<Found & Record<string, unknown>>(
    `select ${STREAM}, (${ENDS})::text as ends_at, (${LASTS})::text as lasts_until, c.grace_ms
     from channel_status o left join session_claims c using (${KEYS})
     where o.updated_at > now() - interval '${DAYS} days' and o.started_at is not null and o.broadcast_id <> ''
       and o.platform = any($1) and case when c.session_id is null then
         exists (select from channel_connections n where n.account_id = o.account_id and n.platform = o.platform
           and n.platform_channel_id = o.channel_id)
         and ${REPORTED}
       else not c.is_deleted and (c.started_at, c.ended_at) is distinct from (o.started_at, ${ENDS}) end
     order by o.started_at, o.account_id, o.platform, o.broadcast_id limit ${AT_A_TIME}`,
    [PLATFORMS],
    'broadcasts-without-session',
  );
  for (const one of found) await db.transaction((tx) => claim(tx, one, one.grace_ms ?? grace_ms));
}

async function claim(tx: Queryable, broadcast: Found, grace_ms: number): Promise<void> {
  const { account_id, platform, broadcast_id, started_at, ends_at, lasts_until } = broadcast;
  const touched = await tx.query<{ session_id: string }>(
    `select s.session_id from (
       select distinct coalesce(m.older_id, c.session_id) as session_id
       from session_claims c left join pending_session_merges m on m.younger_id = c.session_id
       where c.account_id = $1 and not c.is_deleted and (c.platform = $2 and c.broadcast_id = $3
         or c.started_at <= $5::timestamptz + $6 * interval '1 ms'
           and c.ended_at >= $4::timestamptz - $6 * interval '1 ms')) s
     order by (select min(c.started_at) from session_claims c where c.session_id = s.session_id), s.session_id`,
    [account_id, platform, broadcast_id, started_at, lasts_until, grace_ms],
    'touched-sessions',
  );
  const [older_id = sessionIdOf(broadcast), ...younger] = touched.map(({ session_id }) => session_id);
  await tx.query(
    `insert into session_claims (${KEYS}, session_id, started_at, ended_at, grace_ms)
     values ($1, $2, $3, $6, $4, $5, $7)
     on conflict (${KEYS}) do update set started_at = excluded.started_at, ended_at = excluded.ended_at,
       grace_ms = excluded.grace_ms`,
    [account_id, platform, broadcast_id, started_at, ends_at, older_id, grace_ms],
    'claim-broadcast',
  );
  if (younger.length === 0 || ends_at === 'infinity') return;
  await tx.query(
    'update pending_session_merges set older_id = $1 where older_id = any($2)',
    [older_id, younger],
    'session-merges-follow',
  );
  await tx.query(
    `insert into pending_session_merges (younger_id, older_id, account_id)
     select unnest($1::uuid[]), $2, $3 on conflict (younger_id) do nothing`,
    [younger, older_id, account_id],
    'session-merges',
  );
}

/** Appends the events of claimed broadcasts; returns the number of sessions begun. */
export async function beginSessions({ db, events }: ClaimParts, singly: Singly): Promise<number> {
  const claims = await db.query<Broadcast & { session_id: string } & Record<string, unknown>>(
    `select c.session_id, ${STREAM} from session_claims c join channel_status o using (${KEYS})
     where not c.is_begun and not c.is_deleted
       and not exists (select from pending_session_merges m where m.younger_id = c.session_id)
     order by o.started_at limit ${AT_A_TIME}`,
    [],
    'sessions-to-begin',
  );
  const act = actAsService(SERVICE, events);
  const isFirst = (one: (typeof claims)[number]) => one.session_id === sessionIdOf(one);
  // A session begins with the broadcast of its id, whichever began first.
  const in_order = [...claims.filter(isFirst), ...claims.filter((one) => !isFirst(one))];
  return singly.each(in_order, never, async (one) => {
    const { session_id, account_id, ...row } = one;
    const stream = { ...row, started_at: shownInstant(row.started_at) };
    const key = [account_id, stream.platform, stream.broadcast_id];
    const of_session = streamSessionStream(session_id);
    const is_first = isFirst(one);
    try {
      if (is_first)
        await act(streamSession, of_session, { type: 'stream_session:begin', session_id, account_id, stream });
      else await act(streamSession, of_session, { type: 'stream_session:add_stream', stream });
    } catch (error) {
      if (!isDeleted(error)) throw error;
      await leaveDeleted(db, session_id, key);
      return false;
    }
    await db.query(`update session_claims set is_begun = true where ${OF_KEY}`, key, 'session-begun');
    return is_first;
  });
}
const never = (): boolean => false;

/** Whether the session's report was deleted: a broadcast that is found later joins another session. */
export const isDeleted = (error: unknown): boolean =>
  error instanceof DomainError && error.reason === 'REPORT_NOT_FOUND';

/** Marks the claims of a deleted session, which merges with none, and gives up the claim of a new broadcast. */
async function leaveDeleted(db: Database, session_id: string, key: readonly unknown[]): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(`delete from session_claims where ${OF_KEY}`, [...key], 'claim-again');
    await markDeleted(tx, session_id);
  });
}

const markDeleted = async (tx: Queryable, session_id: string): Promise<void> => {
  await tx.query('update session_claims set is_deleted = true where session_id = $1', [session_id], 'claims-deleted');
};

interface Merge {
  younger_id: string;
  older_id: string;
  account_id: string;
}

/** Merges sessions that a broadcast has joined; complete after a crash. Returns the number of merged sessions. */
export async function mergeSessions(parts: ClaimParts, singly: Singly): Promise<number> {
  const pending = await parts.db.query<Merge & Record<string, unknown>>(
    `select younger_id, older_id, account_id from pending_session_merges limit ${AT_A_TIME}`,
    [],
    'sessions-to-merge',
  );
  return singly.each(pending, never, (one) => merge(parts, one));
}

async function merge({ db, events }: ClaimParts, { younger_id, older_id, account_id }: Merge): Promise<boolean> {
  const states = aggregateCacheOf(events);
  const younger = await states.load(streamSession, streamSessionStream(younger_id));
  const { state: older } = await states.load(streamSession, streamSessionStream(older_id));
  const closed = [younger.state, older].find(({ status }) => status === 'deleted');
  if (closed !== undefined) {
    await db.transaction(async (tx) => {
      await markDeleted(tx, closed.session_id);
      await tx.query('delete from pending_session_merges where younger_id = $1', [younger_id], 'session-merge-end');
    });
    return false;
  }
  const is_begun = younger.state.status === 'live' || younger.state.status === 'finalized';
  if (is_begun) await appendMerge(events, older_id, younger.state, younger.revision);
  await db.transaction(async (tx) => {
    await tx.query(
      'update session_claims set session_id = $2, is_begun = false where session_id = $1 and account_id = $3',
      [younger_id, older_id, account_id],
      'claims-of-merged',
    );
    await tx.query('delete from live_session_figures where session_id = $1', [younger_id], 'session-figures-end');
    await tx.query('delete from pending_session_merges where younger_id = $1', [younger_id], 'session-merge-end');
  });
  return true;
}

/** Closes the younger session and takes over its links in one append. */
async function appendMerge(
  events: EventStore,
  older_id: string,
  { session_id: younger_id, links }: StreamSession,
  revision: number,
): Promise<void> {
  const stream = streamSessionStream(younger_id);
  await actAsService(SERVICE, events)(
    streamSession,
    streamSessionStream(older_id),
    { type: 'stream_session:merge', younger_id, links },
    {
      additionalWrites: (decided: readonly StreamSessionEvent[]) => [
        {
          stream,
          expected: revision,
          events: newEvents(
            { idempotency_seed: null },
            stream,
            decided.map((event) => ({ ...event, session_id: younger_id })),
          ),
        },
      ],
    },
  );
}
