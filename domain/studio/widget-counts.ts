import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, type EventOf } from '../../kernel/event';

const ids = { widget_id: z.uuid(), account_id: z.uuid() };

/** Widgets of an account by id: written with the widget's own events, so that their number is bounded. */
export const WIDGET_COUNT_EVENTS = events({
  // Not audited: the widget's own event is, in the same append.
  'widget_count:added': event(ids, { audit: null }),
  'widget_count:removed': event(ids, { audit: null }),
});
export type WidgetCountEvent = EventOf<typeof WIDGET_COUNT_EVENTS>;
export interface WidgetCountCommand {
  /** `keep` counts a widget that is there already, beyond the limit too. */
  type: 'widget_count:add' | 'widget_count:keep' | 'widget_count:remove';
  widget_id: string;
  account_id: string;
}

/** Widgets of an account. */
export const MAX_WIDGETS = 500;

export const widgetCountStream = (account_id: string): string => `widget-count-${account_id}`;

export const widgetCount: Decider<Readonly<Record<string, true>>, WidgetCountCommand, WidgetCountEvent> = {
  initial: {},
  decide(state, { type, widget_id, account_id }) {
    const is_counted = widget_id in state;
    if (type === 'widget_count:remove')
      return is_counted ? [{ type: 'widget_count:removed', widget_id, account_id }] : [];
    if (is_counted) return [];
    if (type === 'widget_count:add' && Object.keys(state).length >= MAX_WIDGETS)
      throw new DomainError('TOO_MANY_WIDGETS');
    return [{ type: 'widget_count:added', widget_id, account_id }];
  },
  evolve(state, { type, widget_id }) {
    if (type === 'widget_count:added') return { ...state, [widget_id]: true };
    const { [widget_id]: _removed, ...others } = state;
    return others;
  },
};
