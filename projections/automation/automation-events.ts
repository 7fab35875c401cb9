import { CAUSE_MS, MAX_DEPTH, START_AUTOMATION, START_REWARD } from '../../domain/automation/automation-runs';
import { onEvent, passesFilters } from '../../domain/automation/nodes/triggers';
import { ERASED_RAW, TOPICS } from '../../domain/common/records';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import type { JobRequest } from '../../kernel/job';
import { type ApplyMode, projection, topic } from '../../kernel/projection';
import { parsedJson } from '../../lib/json/paths';
import { type Trigger, triggersOf } from '../../services/automation/automations/triggers';
import { eventStart, timeOfCause } from '../../services/automation/runs/event-starts';
import { redeemedRewards, rewardStart } from '../../services/automation/runs/reward-starts';

/** Starts automations and actions of rewards by stored events. It has no rows that a rebuild makes. */
export const automationEvents = projection({
  name: 'automation-events',
  version: 3,
  awaited: false,
  from: topic(TOPICS.platform_events),
  tables: [],
  jobs: [START_AUTOMATION, START_REWARD],
  concerns: {
    stored_by: 'event-log',
    among: async (batch, tx) => (await startsAmong(batch, tx)).map(({ record }) => record),
  },
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode) {
    const { enqueue, applied } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    const fresh = batch.filter(({ id }) => applied?.has(id.toLowerCase()) !== true);
    const starts = (await startsAmong(fresh, tx)).flatMap(({ jobs }) => jobs);
    if (starts.length > 0) await enqueue(tx, starts);
    return [];
  },
});

/** Whether a record may start anything. */
const isCause = (record: LoggedRecord): boolean =>
  (record.depth ?? 0) < MAX_DEPTH && record.raw !== ERASED_RAW && Date.now() - timeOfCause(record) <= CAUSE_MS;

/** Records of a batch that start automations or actions of rewards, with the jobs that start them. */
async function startsAmong(
  batch: readonly LoggedRecord[],
  tx: Queryable,
): Promise<{ record: LoggedRecord; jobs: JobRequest[] }[]> {
  const causes = batch.filter(isCause);
  const triggers = await triggersOf(tx, onEvent.type, causes);
  const rewards = await redeemedRewards(tx, causes);
  const starts = causes.map((record) => ({
    record,
    jobs: [
      ...(triggers.length === 0 ? [] : startsOf(record, triggers)),
      ...rewards.filter((one) => one.record === record).map(({ reward_id }) => rewardStart(record, reward_id)),
    ],
  }));
  return starts.filter(({ jobs }) => jobs.length > 0);
}

/** Starts of the automations that have a fitting trigger, one each. */
function startsOf(record: LoggedRecord, triggers: readonly Trigger[]): JobRequest[] {
  const account_id = record.account_id.toLowerCase();
  const payload = parsedJson(record.raw);
  const fitting = triggers.filter(
    (one) => one.account_id === account_id && one.matches.includes(record.type) && passesFilters(one.config, payload),
  );
  const automations = [...new Set(fitting.map(({ automation_id }) => automation_id))];
  return automations.map((automation_id) => {
    const node_ids = fitting.filter((one) => one.automation_id === automation_id).map(({ node_id }) => node_id);
    const payload = { ...eventStart(record, automation_id), automation_id, node_ids };
    return { name: START_AUTOMATION, key: payload.start_key, payload };
  });
}
