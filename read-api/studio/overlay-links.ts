import { z } from 'zod';
import { feature, get, permission, query, whole } from '../../app/operation';
import { linksOf, OverlaySharedLink } from '../../views/studio/overlays';

/** Active links of the overlays that the caller may see. */
export const overlaySharedLinks = query({
  name: 'overlaySharedLinks',
  summary: 'Active shared links of overlays, oldest first',
  rest: get('/v1/overlay-shared-links'),
  pages: whole(),
  guard: [feature('feature:overlays'), permission('overlays:read')],
  input: z.object({}),
  output: OverlaySharedLink,
  run: ({ caller: { account_id, user_id } }, { db }) => linksOf(db, { account_id, user_id }),
});
