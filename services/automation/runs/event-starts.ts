import { v5 } from 'uuid';
import { CAUSE_MS, NO_CAUSE, type RunCause, type RunStart } from '../../../domain/automation/automation-runs';
import { onEvent } from '../../../domain/automation/nodes/triggers';
import { eventUserId } from '../../../domain/events/event-users';
import type { LoggedRecord } from '../../../engines/records/port';
import { withoutNul } from '../../../kernel/texts';
import { exactMicros, shownInstant } from '../../../lib/time/instants';

/** Namespace of the ids of runs; any fixed UUID does. */
const RUNS = '5b7a1f0e-8e0b-4d5e-9d65-0a3f6a9d8f21';

/** The earlier one of the platform's time and ours. */
export function timeOfCause({ occurred_at, received_at }: Pick<LoggedRecord, 'occurred_at' | 'received_at'>): number {
  const times = [exactMicros(occurred_at), exactMicros(received_at)].flatMap((micros) => micros ?? []);
  return times.length === 0 ? Date.parse(received_at) : Math.floor(Math.min(...times) / 1000);
}

/** The start of a run by a stored event: one for each event and automation or reward. */
export function eventStart(record: LoggedRecord, started_id: string): Omit<RunStart, 'automation_id' | 'node_ids'> {
  const { platform, subject: person, subjects = [], depth = 0 } = record;
  const id = record.id.toLowerCase();
  const raw = withoutNul(record.raw);
  const user_id = eventUserId(platform, raw);
  const subject = person === null || user_id === null ? null : `${platform}:${user_id}`;
  const cause: RunCause = {
    ...{ ...NO_CAUSE, platform, person, subject },
    event: { id, type: record.type, platform, raw, created_at: shownInstant(record.occurred_at) },
  };
  const start_key = `${started_id}:${id}`;
  return {
    ...{ account_id: record.account_id.toLowerCase(), run_id: v5(start_key, RUNS), start_key, trigger: onEvent.type },
    ...{ event_id: id, depth, at_ms: timeOfCause(record), window_ms: CAUSE_MS, permissions: null, subject },
    ...{ persons: [...(person === null ? [] : [person]), ...subjects], cause: JSON.stringify(cause) },
  };
}
