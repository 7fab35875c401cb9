import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, type EventOf } from '../../kernel/event';

/** Automations of an account. */
export const MAX_AUTOMATIONS = 1_000;

const ids = { automation_id: z.uuid(), account_id: z.uuid() };

/** Automations of an account by id: written with the automation's own events. */
export const AUTOMATION_COUNT_EVENTS = events({
  // Not audited: the automation's own event is, in the same append.
  'automation_count:added': event(ids, { audit: null }),
  'automation_count:removed': event(ids, { audit: null }),
});
type AutomationCountEvent = EventOf<typeof AUTOMATION_COUNT_EVENTS>;
interface CountCommand {
  type: 'automation_count:add' | 'automation_count:remove';
  automation_id: string;
  account_id: string;
}

export const automationCountStream = (account_id: string): string => `automation-count-${account_id}`;

export const automationCount: Decider<ReadonlySet<string>, CountCommand, AutomationCountEvent> = {
  initial: new Set(),
  decide(state, { type, ...of }) {
    const is_counted = state.has(of.automation_id);
    if (type === 'automation_count:remove') return is_counted ? [{ type: 'automation_count:removed', ...of }] : [];
    if (is_counted) return [];
    if (state.size >= MAX_AUTOMATIONS) throw new DomainError('TOO_MANY_AUTOMATIONS');
    return [{ type: 'automation_count:added', ...of }];
  },
  evolve(state, { type, automation_id }) {
    const next = new Set(state);
    if (type === 'automation_count:added') next.add(automation_id);
    else next.delete(automation_id);
    return next;
  },
};
