import { z } from 'zod';
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

/** By projection, whose rows are counted: types that may count in figures of a session. */
const COUNTED: Readonly<Record<string, (type: string) => boolean>> = {
  'event-log': (type) => isTransition(type) || COUNTED_TYPES.includes(type),
  'chat-live': () => true,
  'stream-samples': () => true,
};

/** A job that corrects the finished sessions of late records; at most one for a batch. */
export function lateRecordJobs(projection: string, records: readonly LoggedRecord[], now = Date.now()): JobRequest[] {
  const counts = COUNTED[projection];
  if (counts === undefined) return [];
  const spans = new Map<string, LateSpan>();
  let first: string | undefined;
  for (const { id, account_id, type, occurred_at } of records) {
    // The comparison is false of a malformed time.
    if (!(Date.parse(occurred_at) < now - LATE_MS) || !counts(type)) continue;
    const at = parseInstant(occurred_at);
    if (at === null) continue;
    first ??= id;
    const span = spans.get(account_id);
    spans.set(account_id, {
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
