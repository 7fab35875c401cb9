import { v7 as uuidv7 } from 'uuid';
import type { RecordEnvelope } from '../../../domain/common/records';
import type { DraftRecord } from '../webhook/webhook';

/**
 * Makes the record of a draft for one account; `received_at` in Unix milliseconds. Member by member, because copying
 * whole objects is slower.
 */
export function envelopeOf(
  draft: DraftRecord,
  account_id: string,
  received_at: number,
  trace: string | null,
): RecordEnvelope {
  return {
    id: uuidv7(),
    account_id,
    type: draft.type,
    platform: draft.platform,
    external_id: draft.external_id,
    occurred_at: draft.occurred_at,
    received_at: instantOf(received_at),
    subject: draft.subject,
    subjects: draft.subjects,
    raw: draft.raw,
    trace,
    same_raw: draft.same_raw,
    former_id: draft.former_id,
    reported_at: draft.reported_at,
    seen_at: draft.seen_at,
  };
}

let last_ms = Number.NaN;
let last_instant = '';

/** RFC 3339 UTC. Caches the last result, because many messages arrive in one millisecond. */
function instantOf(ms: number): string {
  if (ms !== last_ms) [last_ms, last_instant] = [ms, new Date(ms).toISOString()];
  return last_instant;
}
