import type { Database } from '../../engines/postgres/port';
import { allRows, countRows } from './session-figures';
import { KEYS } from './session-claims';
import { type Counting, finalize, lastEnd, type Session, streamsOf } from './session-ends';
import { Singly } from './singly';

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
 * Counts finalized sessions again where rows came late, or where a broadcast resumed and has ended. Rows that retention
 * or an erasure has taken correct nothing.
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
      const ended_at = lastEnd(await streamsOf(parts, session.id));
      if (ended_at === null) return false;
      const is_longer = Date.parse(ended_at) > Date.parse(session.ended_at);
      const rows = await rowsOf(parts, session);
      if (rows.are_lost || (rows.all <= session.rows_counted && !is_longer)) return false;
      return (await finalize(parts, session)) !== undefined;
    },
  );
  singly.end();
  return corrected;
}

/** Rows of a finished session, and whether rows are gone that its last count has read. */
async function rowsOf(
  parts: Counting,
  { id, account_id, ended_at }: Session & { ended_at: string },
): Promise<{ all: number; are_lost: boolean }> {
  const { db } = parts;
  const [counted] = await db.query<{ counted_ms: number; chat_rows: number; other_rows: number }>(
    'select counted_ms, chat_rows, other_rows from session_row_counts where session_id = $1',
    [id],
    'session-rows-counted',
  );
  const streams = await streamsOf(parts, id);
  const rows = await countRows(db, account_id, streams, { until: ended_at, received_before: counted?.counted_ms ?? 0 });
  const are_lost = counted !== undefined && (rows.chat < counted.chat_rows || rows.other < counted.other_rows);
  return { all: allRows(rows), are_lost };
}

/** Time of an account's records of a day that were applied late. */
export interface LateSpan {
  account_id: string;
  /** RFC 3339, both inclusive. */
  from: string;
  to: string;
}

/** Corrects the finished sessions in the time of late records, whatever their age. Returns their number. */
export async function correctLateSessions(parts: Counting, spans: readonly LateSpan[]): Promise<number> {
  const found = await lateSessions(parts.db, spans);
  const singly = new Singly();
  const corrected = await singly.each(
    found,
    () => false,
    async (session) => {
      const { are_lost } = await rowsOf(parts, session);
      return !are_lost && (await finalize(parts, session)) !== undefined;
    },
  );
  singly.end();
  return corrected;
}

const lateSessions = (db: Database, spans: readonly LateSpan[]): Promise<(Session & { ended_at: string })[]> =>
  db.query<Session & { ended_at: string }>(
    `select distinct s.id, s.account_id, s.ended_at
     from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) late (account_id, since, until)
       join stream_sessions s on s.account_id = late.account_id and not s.is_live
         and s.started_at <= late.until and s.ended_at >= late.since`,
    [spans.map(({ account_id }) => account_id), spans.map(({ from }) => from), spans.map(({ to }) => to)],
    'sessions-of-late-records',
  );
