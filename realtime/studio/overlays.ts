import { z } from 'zod';
import { boundToken } from '../../kernel/channel';
import { overlayAccount, overlayForwards, overlayPage } from '../../views/studio/drawn-pages';
import { OverlayLayer } from '../../views/studio/overlays';
import { overlayAssets } from '../../views/studio/drawn-assets';
import { channel, ofPage } from '../runtime/channel/family';
import { pageMessages, pageState, sendWithPictures, sourcesOf, stateMessage } from './drawn';

export const overlay = channel({
  pattern: 'overlay:<key>',
  summary: "One overlay, and messages that its visible layers draw. Its own token or a shared link's opens it.",
  carries: {
    'overlay:update': {
      summary:
        'First the whole, to a new subscriber alone; then what has changed: layers with the new revision, or members ' +
        'of the overlay.',
      data: z.looseObject({
        overlay_id: z.uuid().optional(),
        revision: z.int().optional(),
        width: z.int().optional(),
        height: z.int().optional(),
        background: z.string().optional(),
        layers: z.array(OverlayLayer).optional().describe('The visible ones, in their order'),
        changed: z.array(OverlayLayer).optional(),
        removed: z.array(z.uuid()).optional().describe('Deleted or hidden layers'),
        ...pageState,
      }),
    },
    ...pageMessages,
  },
  owner: ofPage('overlay', overlayAccount),
  gate: boundToken('overlay', 'shared_overlay'),
  flag: 'feature:overlays',
  forwards: (key, { db }) => overlayForwards(db, key),
  async assets(id, services) {
    const assets = await overlayAssets(services.db, id, sourcesOf(services));
    return assets === null ? null : { event_type: 'overlay:update', data: JSON.stringify({ assets }) };
  },
  state: async (id, services) => stateMessage('overlay:update', await overlayForwards(services.db, id), services),
  async bootstrap({ channel_id, send }, services) {
    const page = await overlayPage(services.db, channel_id, sourcesOf(services));
    if (page !== null) await sendWithPictures(page, services, (data) => send('overlay:update', data));
  },
});
