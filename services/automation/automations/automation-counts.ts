import type { RequestContext } from '../../../access/authentication/caller';
import { aggregateCacheOf } from '../../../app/write-path/aggregate-cache';
import { newEvents } from '../../../app/write-path/event-ids';
import { automationCount, automationCountStream } from '../../../domain/automation/automation-counts';
import type { AutomationEvent } from '../../../domain/automation/automations';
import type { EventStore, StreamWrite } from '../../../engines/event-store/port';

const COUNTS = {
  'automation:created': 'automation_count:add',
  'automation:deleted': 'automation_count:remove',
} as const;

/** Writes that count a new or deleted automation, with its event. @throws DomainError TOO_MANY_AUTOMATIONS */
export async function automationCountWrites(
  context: RequestContext,
  store: EventStore,
  changes: readonly AutomationEvent[],
): Promise<StreamWrite[]> {
  const counting = changes.find(({ type }) => type in COUNTS);
  if (counting === undefined) return [];
  const { automation_id, account_id } = counting;
  const type = COUNTS[counting.type as keyof typeof COUNTS];
  const stream = automationCountStream(account_id);
  const { state, revision } = await aggregateCacheOf(store).load(automationCount, stream);
  const counted = automationCount.decide(state, { type, automation_id, account_id });
  if (counted.length === 0) return [];
  const expected = revision === -1 ? 'none' : revision;
  return [{ stream, expected, events: newEvents(context, `${stream}\n${automation_id}\n${type}`, counted) }];
}
