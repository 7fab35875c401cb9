import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { streamSession, streamSessionStream } from '../../domain/history/stream-sessions';
import { KEPT_COUNT_DAYS } from '../../domain/history/kept-counts';
import type { LateSpan } from './late-records';
import { KEYS } from './session-claims';
import { type Counting, finalize, lastEnd, type Session, streamsOf } from './session-ends';
import { Singly } from './singly';

/** Age of the checked ends of resumed broadcasts; older claims are never decided again. */
const DAYS = 7;
/** Late records that are read at a time. */
const AT_A_TIME = 500;

/** Finalized sessions whose broadcast has resumed and has ended. */
const TO_CHECK = `
  select distinct s.id, s.account_id
  from channel_status o join session_claims c using (${KEYS}) join stream_sessions s on s.id = c.session_id
  where not o.is_online and o.updated_at > now() - interval '${DAYS} days' and not s.is_live and o.ended_at > s.ended_at`;

/**
 * Counts finalized sessions again whose broadcast has resumed and has ended.
 * @returns the number of corrected sessions
 */
export async function correctResumed(parts: Counting, isOver: () => boolean): Promise<number> {
  const singly = new Singly();
  const found = await parts.db.query<Session>(TO_CHECK, [], 'sessions-to-check');
  const corrected = await singly.each(found, isOver, async (session) => {
    if (lastEnd(await streamsOf(parts, session.id)) === null) return false;
    return (await finalize(parts, session)) !== undefined;
  });
  singly.end();
  return corrected;
}

type Span = LateSpan & { id: string } & Record<string, unknown>;

/**
 * Counts the finalized sessions in the time of late records again, while the counts of deleted rows are kept. A span
 * is deleted after the corrections, so that a crash in between repeats counts that change nothing. A session that is
 * not finalized counts all records when it is.
 * @returns the number of corrected sessions
 */
export async function correctLate(parts: Counting, isOver: () => boolean): Promise<number> {
  const { db, events } = parts;
  const spans = await db.query<Span>(
    `select id::text as id, account_id, since, until from late_spans order by late_spans.id limit ${AT_A_TIME}`,
    [],
    'late-spans',
  );
  const singly = new Singly();
  let corrected = 0;
  for (const of of byAccount(spans)) {
    await singly.each([of], isOver, async () => {
      for (const session of await lateSessions(parts, of)) {
        if (isOver()) return false;
        const { state } = await aggregateCacheOf(events).load(streamSession, streamSessionStream(session.id));
        if (state.status === 'finalized' && (await finalize(parts, session)) !== undefined) corrected += 1;
      }
      await db.query('delete from late_spans where id = any($1::bigint[])', [of.map(({ id }) => id)]);
      return true;
    });
  }
  singly.end();
  return corrected;
}

const byAccount = (spans: readonly Span[]): Span[][] => {
  const accounts = new Map<string, Span[]>();
  for (const span of spans) accounts.set(span.account_id, [...(accounts.get(span.account_id) ?? []), span]);
  return [...accounts.values()];
};

const lateSessions = ({ db }: Counting, spans: readonly LateSpan[]): Promise<Session[]> =>
  db.query<Session>(
    `select distinct s.id, s.account_id
     from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) late (account_id, since, until)
       join stream_sessions s on s.account_id = late.account_id
         and s.started_at <= late.until and (s.is_live or s.ended_at >= late.since)
         and s.started_at > now() - interval '${KEPT_COUNT_DAYS} days'`,
    [spans.map(({ account_id }) => account_id), spans.map(({ since }) => since), spans.map(({ until }) => until)],
    'sessions-of-late-records',
  );
