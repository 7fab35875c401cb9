import { reactor } from '../../app/reactor';
import { widgetCount, widgetCountStream } from '../../domain/studio/widget-counts';
import { WIDGET_EVENTS } from '../../domain/studio/widgets';

/** Counts widgets of releases that did not count them in the append that created them. */
export const countedWidgets = reactor({
  name: 'counted-widgets',
  from: 'beginning',
  events: [WIDGET_EVENTS],
  on: {
    async 'widget:created'({ token_id, account_id, widget_id }, { act }) {
      // Later events have the token of the page, and their own entry in the count.
      if (token_id !== null) return;
      await act(widgetCount, widgetCountStream(account_id), { type: 'widget_count:keep', widget_id, account_id });
    },
    // Those releases deleted without counting; a widget that is not counted changes nothing.
    async 'widget:deleted'({ account_id, widget_id }, { act }) {
      await act(widgetCount, widgetCountStream(account_id), { type: 'widget_count:remove', widget_id, account_id });
    },
  },
});
