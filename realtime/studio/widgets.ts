import { z } from 'zod';
import { boundToken } from '../../kernel/channel';
import { widgetAccount, widgetForwards, widgetPage } from '../../views/studio/drawn-pages';
import { widgetAssets } from '../../views/studio/drawn-assets';
import { channel, ofPage } from '../runtime/channel/family';
import { pageMessages, pageState, sendWithPictures, sourcesOf, stateMessage } from './drawn';

export const widget = channel({
  pattern: 'widget:<widget_instance_id>',
  summary: 'One widget, and messages that it draws. Its own token opens it.',
  carries: {
    'widget:update': {
      summary:
        'First the whole, to a new subscriber alone; then each change of its name or settings, and links to its files.',
      data: z.looseObject({
        widget_instance_id: z.uuid().optional(),
        revision: z.int().optional(),
        type: z.string().optional(),
        config: z.record(z.string(), z.unknown()).optional(),
        ...pageState,
      }),
    },
    ...pageMessages,
  },
  owner: ofPage('widget', widgetAccount),
  gate: boundToken('widget'),
  flag: 'feature:widgets',
  forwards: (id, { db }) => widgetForwards(db, id),
  async assets(id, services) {
    const assets = await widgetAssets(services.db, id, sourcesOf(services));
    return assets === null ? null : { event_type: 'widget:update', data: JSON.stringify({ assets }) };
  },
  state: async (id, services) => stateMessage('widget:update', await widgetForwards(services.db, id), services),
  async bootstrap({ channel_id, send }, services) {
    const page = await widgetPage(services.db, channel_id, sourcesOf(services));
    if (page !== null) await sendWithPictures(page, services, (data) => send('widget:update', data));
  },
});
