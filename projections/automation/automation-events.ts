import { v5 } from 'uuid';
import {
  CAUSE_MS,
  MAX_DEPTH,
  type RunCause,
  NO_CAUSE,
  START_AUTOMATION,
} from '../../domain/automation/automation-runs';
import { holds } from '../../domain/automation/nodes/comparisons';
import { type Filter, onEvent } from '../../domain/automation/nodes/triggers';
import { ERASED_RAW, TOPICS } from '../../domain/common/records';
import { eventUserId } from '../../domain/events/event-users';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import type { JobRequest } from '../../kernel/job';
import { type ApplyMode, projection, topic } from '../../kernel/projection';
import { withoutNul } from '../../kernel/texts';
import { memberAt, parsedJson } from '../../lib/json/paths';
import { exactMicros, shownInstant } from '../../lib/time/instants';
import { type Trigger, triggersOf } from '../../services/automation/automations/triggers';

/** Namespace of the ids of runs; any fixed UUID does. */
const RUNS = '5b7a1f0e-8e0b-4d5e-9d65-0a3f6a9d8f21';

/** Starts automations by stored events. It has no rows that a rebuild makes. */
export const automationEvents = projection({
  name: 'automation-events',
  version: 1,
  awaited: false,
  from: topic(TOPICS.platform_events),
  tables: [],
  jobs: [START_AUTOMATION],
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode) {
    const { enqueue, applied } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    const fresh = batch.filter((record) => applied?.has(record.id.toLowerCase()) !== true && isCause(record));
    const triggers = await triggersOf(tx, onEvent.type, fresh);
    const starts = triggers.length === 0 ? [] : fresh.flatMap((record) => startsOf(record, triggers));
    if (starts.length > 0) await enqueue(tx, starts);
    return [];
  },
});

/** Whether a record may start anything. */
const isCause = (record: LoggedRecord): boolean =>
  (record.depth ?? 0) < MAX_DEPTH && record.raw !== ERASED_RAW && Date.now() - timeOf(record) <= CAUSE_MS;

/** The earlier one of the platform's time and ours. */
function timeOf({ occurred_at, received_at }: LoggedRecord): number {
  const times = [exactMicros(occurred_at), exactMicros(received_at)].flatMap((micros) => micros ?? []);
  return times.length === 0 ? Date.parse(received_at) : Math.floor(Math.min(...times) / 1000);
}

/** Starts of the automations that have a fitting trigger, one each. */
function startsOf(record: LoggedRecord, triggers: readonly Trigger[]): JobRequest[] {
  const account_id = record.account_id.toLowerCase();
  const payload = parsedJson(record.raw);
  const fits = ({ config }: Trigger) =>
    ((config.filters ?? []) as Filter[]).every(({ path, op, value }) =>
      holds(memberAt(payload, path.split('.')), op, value),
    );
  const fitting = triggers.filter(
    (one) => one.account_id === account_id && one.matches.includes(record.type) && fits(one),
  );
  const automations = [...new Set(fitting.map(({ automation_id }) => automation_id))];
  return automations.map((automation_id) => {
    const node_ids = fitting.filter((one) => one.automation_id === automation_id).map(({ node_id }) => node_id);
    return startOf(record, { account_id, automation_id, node_ids });
  });
}

function startOf(
  record: LoggedRecord,
  of: { account_id: string; automation_id: string; node_ids: string[] },
): JobRequest {
  const { platform, subject: person, subjects = [], depth = 0 } = record;
  const id = record.id.toLowerCase();
  const raw = withoutNul(record.raw);
  const user_id = eventUserId(platform, raw);
  const subject = person === null || user_id === null ? null : `${platform}:${user_id}`;
  const cause: RunCause = {
    ...{ ...NO_CAUSE, platform, person, subject },
    event: { id, type: record.type, platform, raw, created_at: shownInstant(record.occurred_at) },
  };
  const start_key = `${of.automation_id}:${id}`;
  const payload = {
    ...{ ...of, run_id: v5(start_key, RUNS), start_key, trigger: onEvent.type, event_id: id, depth },
    ...{ at_ms: timeOf(record), window_ms: CAUSE_MS, permissions: null, subject },
    ...{ persons: [...(person === null ? [] : [person]), ...subjects], cause: JSON.stringify(cause) },
  };
  return { name: START_AUTOMATION, key: start_key, payload };
}
