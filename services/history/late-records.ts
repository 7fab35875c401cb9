import { isEmittedId } from '../../domain/events/emitted';
import { isTransition } from '../../domain/history/channel-status';
import { COUNTED_TYPES } from '../../domain/history/session-figures';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { parseInstant } from '../../lib/time/instants';

/** Least age of a late record; a shorter grace lowers it. */
const LATE_MS = 150_000;

/** By projection, whose rows are counted: records that may count in figures of a session. */
const COUNTED: Readonly<Record<string, (record: LoggedRecord) => boolean>> = {
  'event-log': ({ type, id }) => isTransition(type) || (COUNTED_TYPES.includes(type) && !isEmittedId(id)),
  'chat-live': () => true,
  'stream-samples': () => true,
};

/** Time of an account's records of a day that were applied late. */
export interface LateSpan {
  account_id: string;
  /** RFC 3339, both inclusive. */
  since: string;
  until: string;
}

/**
 * Times of the late records among those that a projection applies. A session is finished no earlier than the grace
 * after its end, so that records of half that age are counted by then.
 */
export function lateSpans(
  projection: string,
  records: readonly LoggedRecord[],
  grace_ms: number,
  now = Date.now(),
): LateSpan[] {
  const counts = COUNTED[projection];
  if (counts === undefined) return [];
  const before = now - Math.min(LATE_MS, grace_ms / 2);
  const spans = new Map<string, LateSpan>();
  for (const record of records) {
    const { account_id, occurred_at } = record;
    // The comparison is false of a malformed time.
    if (!(Date.parse(occurred_at) < before) || !counts(record)) continue;
    const at = parseInstant(occurred_at);
    if (at === null) continue;
    // By day: two records concern no session of the months between them.
    const key = `${account_id} ${at.slice(0, '2026-01-01'.length)}`;
    const { since, until } = spans.get(key) ?? { since: at, until: at };
    spans.set(key, { account_id, since: at < since ? at : since, until: at > until ? at : until });
  }
  return [...spans.values()];
}

/** Stores the times of late records in the transaction that applies the records. */
export const noteLateRecords =
  (grace_ms: number) =>
  async (tx: Queryable, projection: string, records: readonly LoggedRecord[]): Promise<void> => {
    const spans = lateSpans(projection, records, grace_ms);
    if (spans.length === 0) return;
    await tx.query(
      `insert into late_spans (account_id, since, until)
       select account_id, since, until
       from json_to_recordset($1::json) as s (account_id uuid, since timestamptz, until timestamptz)`,
      [JSON.stringify(spans)],
      'note-late-spans',
    );
  };
