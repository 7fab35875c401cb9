import type { RequestContext } from '../../access/authentication/caller';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { newEvents } from '../../app/write-path/event-ids';
import { widgetCount, widgetCountStream, type WidgetCountCommand } from '../../domain/studio/widget-counts';
import type { EventStore, StreamWrite } from '../../engines/event-store/port';

/** Writes that count a widget in or out, for the append of its own events. @throws DomainError TOO_MANY_WIDGETS */
export async function countWrites(
  context: RequestContext,
  events: EventStore,
  command: WidgetCountCommand,
): Promise<StreamWrite[]> {
  const stream = widgetCountStream(command.account_id);
  const { state, revision } = await aggregateCacheOf(events).load(widgetCount, stream);
  const counted = widgetCount.decide(state, command);
  if (counted.length === 0) return [];
  const expected = revision === -1 ? 'none' : revision;
  return [{ stream, expected, events: newEvents(context, `${stream}\n${command.widget_id}`, counted) }];
}
