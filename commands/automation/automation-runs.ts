import { z } from 'zod';
import { command, conflict, feature, notFound, permission, post } from '../../app/operation';
import { load } from '../../app/write-path/aggregate-cache';
import { automation, automationStream } from '../../domain/automation/automations';
import { automationRun, automationRunStream } from '../../domain/automation/automation-runs';
import { manually } from '../../domain/automation/nodes/triggers';
import { AutomationRun, automationRunOf } from '../../views/automation/automation-runs';

/** Shows a run that was started by hand before its row is there. */
const begun = (id: string, automation_id: string): AutomationRun => ({
  ...{ id, automation_id, reward_id: null, status: 'pending', trigger: manually.type, event_id: null, depth: 0 },
  ...{ error: null, started_at: null, finished_at: null },
});

export const runAutomation = command({
  name: 'runAutomation',
  summary: 'Starts an automation at its manual trigger; its templates read what the caller may read',
  rest: post('/v1/automations/{id}/run', { status: 202 }),
  guard: [feature('feature:automation'), permission('automations:execute')],
  input: z.object({ id: z.uuid() }),
  output: AutomationRun,
  errors: {
    AUTOMATION_NOT_FOUND: notFound('Automation not found'),
    AUTOMATION_DISABLED: conflict('The automation is disabled'),
    NO_MANUAL_TRIGGER: conflict('The automation has no manual trigger'),
  },
  async run({ input: { id }, caller, act, newId, refuse }, { db, events }) {
    const { account_id } = caller;
    const run_id = newId('automation-run');
    const state = (await load(events, automation, automationStream(id)))?.state;
    if (state?.status !== 'active' || state.account_id !== account_id) throw refuse('AUTOMATION_NOT_FOUND');
    const precondition = (last: object | null) => {
      if (last !== null) return undefined;
      if (!state.enabled) return refuse('AUTOMATION_DISABLED');
      return !state.graph.nodes.some(({ type }) => type === manually.type) && refuse('NO_MANUAL_TRIGGER');
    };
    const permissions = [...caller.permissions].sort();
    const request = { type: 'automation_run:request', run_id, automation_id: id, account_id, permissions } as const;
    await act(automationRun, automationRunStream(run_id), request, { precondition });
    return (await automationRunOf(db, account_id, run_id)) ?? begun(run_id, id);
  },
});
