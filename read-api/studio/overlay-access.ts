import { z } from 'zod';
import { feature, get, notFound, permission, query, whole } from '../../app/operation';
import { candidatesFor, entriesOf } from '../../views/studio/access-entries';
import { OverlayAccess, OverlayAccessCandidate, overlayOf } from '../../views/studio/overlays';

const GUARD = [feature('feature:overlays'), permission('overlays:access-read')] as const;
const OVERLAY_NOT_FOUND = { OVERLAY_NOT_FOUND: notFound('Overlay not found') };

/** Access entries of an overlay. */
export const overlayAccess = query({
  name: 'overlayAccess',
  summary: 'What single members may do with an overlay',
  rest: get('/v1/overlays/{id}/access'),
  pages: whole(),
  guard: GUARD,
  input: z.object({ id: z.uuid() }),
  output: OverlayAccess,
  errors: OVERLAY_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, refuse }, { db }) {
    if ((await overlayOf(db, { account_id, user_id: null }, id)) === undefined) throw refuse('OVERLAY_NOT_FOUND');
    return (await entriesOf(db, 'overlay', id)).map((entry) => ({ overlay_id: id, ...entry }));
  },
});

export const overlayAccessCandidates = query({
  name: 'overlayAccessCandidates',
  summary: 'Members who have no access entry of an overlay',
  rest: get('/v1/overlays/{id}/access/candidates'),
  pages: whole(),
  guard: GUARD,
  input: z.object({ id: z.uuid() }),
  output: OverlayAccessCandidate,
  errors: OVERLAY_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, refuse }, { db }) {
    if ((await overlayOf(db, { account_id, user_id: null }, id)) === undefined) throw refuse('OVERLAY_NOT_FOUND');
    return candidatesFor(db, 'overlay', account_id, id);
  },
});
