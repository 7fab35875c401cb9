import { actAsService } from '../../app/service-calls';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { type StreamSessionEvent, streamSession, streamSessionStream } from '../../domain/history/stream-sessions';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';
import { shownInstant } from '../../lib/time/instants';
import { isDeleted, KEYS, SERVICE } from './session-claims';
import { type Bots, bridgedStreams, type CountedStream, countSession } from './session-figures';

export interface Counting {
  db: Database;
  events: EventStore;
  /** Longest gap between two broadcasts of one session, in milliseconds. */
  grace_ms: number;
  bots: Bots;
}

export type Session = Record<string, unknown> & { id: string; account_id: string };

/** Broadcasts of the session `s`: those claimed for it, and after a loss of claims those of its events. */
export const broadcastsOf = (session: string) => `(
  select ${KEYS} from session_claims where session_id = ${session}
  union select ${KEYS} from session_streams where session_id = ${session}) x join channel_status o using (${KEYS})`;
type Finalized = Extract<
  StreamSessionEvent,
  { type: 'stream_session:finalized' } | { type: 'stream_session:corrected' }
>;

/** Figures of another count were stored during this one, and may be newer: the session is counted again. */
class CountedMeanwhile extends DomainError {
  constructor(session_id: string) {
    super('COUNTED_MEANWHILE', { session_id });
  }
}

/** @returns the stored event; undefined where nothing changed */
export async function finalize(parts: Counting, { id, account_id }: Session): Promise<Finalized | undefined> {
  const { db, events, bots } = parts;
  const streams = await streamsOf(parts, id);
  const ended_at = lastEnd(streams);
  // A broadcast that looks had ended is on air again.
  if (ended_at === null) return undefined;
  const stream = streamSessionStream(id);
  const { state: before } = await aggregateCacheOf(events).load(streamSession, stream);
  const figures = await countSession(db, account_id, streams, ended_at, bots);
  const command = { type: 'stream_session:finalize' as const, ended_at, figures };
  const acted = await actAsService(SERVICE, events)(streamSession, stream, command, {
    precondition: (now) => (now.figures === before.figures ? undefined : new CountedMeanwhile(id)),
  }).catch((error: unknown) => {
    if (!isDeleted(error)) throw error;
    return { events: [] as StreamSessionEvent[] };
  });
  await db.query('delete from live_session_figures where session_id = $1', [id], 'session-figures-end');
  const [stored] = acted.events;
  return stored !== undefined && 'figures' in stored ? stored : undefined;
}

/** Time at which the last stream ended; null while a stream is on air. */
export function lastEnd(streams: readonly CountedStream[]): string | null {
  let last = '';
  for (const { ended_at } of streams) {
    if (ended_at === null) return null;
    if (last === '' || Date.parse(ended_at) > Date.parse(last)) last = ended_at;
  }
  return last === '' ? null : shownInstant(last);
}

/** The streams of a session, oldest first; each has ended unless it is on air. */
export async function streamsOf(
  { db, grace_ms }: Pick<Counting, 'db' | 'grace_ms'>,
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
