import { z } from 'zod';
import { feature, get, notFound, permission, query } from '../../app/operation';
import { layersOf, OverlayLayers, overlayOf } from '../../views/studio/overlays';

/** Layers of an overlay, with hidden ones. */
export const overlayLayers = query({
  name: 'overlayLayers',
  summary: 'Layers of an overlay, in the order in which they are drawn',
  rest: get('/v1/overlays/{overlay_id}/layers'),
  guard: [feature('feature:overlays'), permission('overlays:read')],
  input: z.object({ overlay_id: z.uuid() }),
  output: OverlayLayers,
  errors: { OVERLAY_NOT_FOUND: notFound('Overlay not found') },
  async run({ input: { overlay_id }, caller: { account_id, user_id }, refuse }, { db }) {
    if ((await overlayOf(db, { account_id, user_id }, overlay_id)) === undefined) throw refuse('OVERLAY_NOT_FOUND');
    return layersOf(db, overlay_id);
  },
});
