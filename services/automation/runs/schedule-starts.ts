import { v5 } from 'uuid';
import { CAUSE_MS, NO_CAUSE, type RunStart, START_AUTOMATION } from '../../../domain/automation/automation-runs';
import { onSchedule } from '../../../domain/automation/nodes/schedules';
import type { JobRequest } from '../../../kernel/job';
import type { DueSchedule } from '../automations/automation-schedules';

/** Namespace of the ids of runs that schedules start; any fixed UUID does. */
const RUNS = 'a7e3c6d2-5c43-4f0e-9a55-2f8f2f4f9a10';

/** Starts of the automations whose schedules are due, one each; `due` is in the order of the due times. */
export function scheduleStarts(due: readonly DueSchedule[], now_ms: number): JobRequest[] {
  return [...new Set(due.map(({ automation_id }) => automation_id))].map((automation_id) => {
    const own = due.filter((one) => one.automation_id === automation_id);
    const { account_id, node_id, due_at } = own[0]!;
    const start_key = `${automation_id}:${node_id}:${due_at}`;
    const payload: RunStart = {
      ...{ account_id, automation_id, run_id: v5(start_key, RUNS), start_key, trigger: onSchedule.type },
      ...{ node_ids: own.map((one) => one.node_id), event_id: null, depth: 0, at_ms: now_ms, window_ms: CAUSE_MS },
      ...{ permissions: null, persons: [], subject: null, cause: JSON.stringify(NO_CAUSE) },
    };
    return { name: START_AUTOMATION, key: start_key, payload };
  });
}
