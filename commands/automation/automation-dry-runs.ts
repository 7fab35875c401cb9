import { z } from 'zod';
import { command, conflict, feature, invalid, notFound, permission, post } from '../../app/operation';
import { load } from '../../app/write-path/aggregate-cache';
import { automation, automationStream } from '../../domain/automation/automations';
import { exampleText } from '../../domain/events/event-catalogue';
import { dryCause, type DryEvent, dryTriggers, storedEvent } from '../../services/automation/runs/dry-causes';
import { dryRun } from '../../services/automation/runs/dry-run';
import { DryRun } from '../../views/automation/automation-runs';

export const dryRunAutomation = command({
  name: 'dryRunAutomation',
  summary: 'Shows what an automation does by an event, or by hand, without doing it',
  rest: post('/v1/automations/{id}/dry-run'),
  guard: [feature('feature:automation'), permission('automations:execute')],
  input: z.object({
    id: z.uuid(),
    event_id: z.uuid().nullish().describe('A stored event of the account'),
    event_type: z.string().max(100).nullish().describe("A type of events, with the catalogue's example"),
  }),
  output: DryRun,
  errors: {
    AUTOMATION_NOT_FOUND: notFound('Automation not found'),
    EVENT_NOT_FOUND: notFound('Event not found'),
    TWO_CAUSES: invalid('event_id and event_type exclude each other'),
    NO_EXAMPLE: invalid('The catalogue has no example of this event_type'),
    NO_TRIGGER: conflict('No trigger of the automation starts by this cause'),
  },
  async run({ input: { id, event_id, event_type }, caller, context: { now }, refuse }, services) {
    const { account_id } = caller;
    const state = (await load(services.events, automation, automationStream(id)))?.state;
    if (state?.status !== 'active' || state.account_id !== account_id) throw refuse('AUTOMATION_NOT_FOUND');
    if (event_id && event_type) throw refuse('TWO_CAUSES');
    let event: DryEvent | null = null;
    if (event_id) {
      const found = await storedEvent(services.db, account_id, event_id);
      if (found === undefined) throw refuse('EVENT_NOT_FOUND');
      event = found;
    } else if (typeof event_type === 'string') {
      const raw = exampleText(event_type, now);
      if (raw === null) throw refuse('NO_EXAMPLE');
      const platform = event_type.slice(0, event_type.indexOf(':'));
      event = { id: null, type: event_type, platform, raw, created_at: new Date(now).toISOString() };
    }
    const triggers = dryTriggers(state.graph, event);
    if (triggers.length === 0) throw refuse('NO_TRIGGER');
    const cause = await dryCause(services, event, caller.permissions);
    const permissions = [...caller.permissions];
    const of = { account_id, automation_id: state.automation_id, graph: state.graph, triggers, permissions, cause };
    return dryRun(services, { ...of, event_id: event?.id ?? null });
  },
});
