import { z } from 'zod';
import { isEmittedId } from '../../domain/events/emitted';
import { COUNTED_TYPES } from '../../domain/history/session-figures';
import { isTransition } from '../../domain/history/channel-status';
import type { LoggedRecord } from '../../engines/records/port';
import { job, type JobRequest } from '../../kernel/job';
import { parseInstant } from '../../lib/time/instants';
import { correctLateSessions, type LateSpan } from './session-corrections';
import type { Counting } from './session-ends';

/** Age of a late record when it is applied; those of a session that ended just now are found by its own checks. */
const LATE_MS = 10 * 60_000;
const NAME = 'late-records';

/** By projection, whose rows are counted: records that may count in figures of a session. */
const COUNTED: Readonly<Record<string, (record: LoggedRecord) => boolean>> = {
  'event-log': ({ type, id }) => isTransition(type) || (COUNTED_TYPES.includes(type) && !isEmittedId(id)),
  'chat-live': () => true,
  'stream-samples': () => true,
};

/** A job that corrects the finished sessions of late records; at most one for a batch. */
export function lateRecordJobs(projection: string, records: readonly LoggedRecord[], now = Date.now()): JobRequest[] {
  const counts = COUNTED[projection];
  if (counts === undefined) return [];
  const spans = new Map<string, LateSpan>();
  let first: string | undefined;
  for (const record of records) {
    const { id, account_id, occurred_at } = record;
    // The comparison is false of a malformed time.
    if (!(Date.parse(occurred_at) < now - LATE_MS) || !counts(record)) continue;
    const at = parseInstant(occurred_at);
    if (at === null) continue;
    first ??= id;
    // By day: two records concern no session of the months between them.
    const key = `${account_id} ${at.slice(0, '2026-01-01'.length)}`;
    const span = spans.get(key);
    spans.set(key, {
      account_id,
      from: span === undefined || at < span.from ? at : span.from,
      to: span === undefined || at > span.to ? at : span.to,
    });
  }
  if (first === undefined) return [];
  return [{ name: NAME, key: `${NAME}/${projection}/${first}`, payload: { spans: [...spans.values()] } }];
}

/** Corrects the finished sessions in the time of late records. */
export const lateRecordsJob = (sessions: Counting) =>
  job({
    name: NAME,
    payload: { spans: z.array(z.strictObject({ account_id: z.uuid(), from: z.string(), to: z.string() })) },
    after_unknown: 'repeat',
    async run({ spans }) {
      await correctLateSessions(sessions, spans);
    },
  });
