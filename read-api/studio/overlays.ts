import { z } from 'zod';
import { feature, get, notFound, permission, query, whole } from '../../app/operation';
import { Overlay, overlayOf, overlaysOf } from '../../views/studio/overlays';

const OVERLAYS = feature('feature:overlays');
const OVERLAY_NOT_FOUND = { OVERLAY_NOT_FOUND: notFound('Overlay not found') };

/** The account's overlays; an access entry may hide one. Source: spec extra-facts §7. */
export const overlays = query({
  name: 'overlays',
  summary: "The account's overlays, oldest first",
  rest: get('/v1/overlays'),
  pages: whole(),
  guard: [OVERLAYS, permission('overlays:read')],
  input: z.object({}),
  output: Overlay,
  run: ({ caller: { account_id, user_id } }, { db }) => overlaysOf(db, { account_id, user_id }),
});

export const overlay = query({
  name: 'overlay',
  summary: 'One overlay of the account',
  rest: get('/v1/overlays/{id}'),
  guard: [OVERLAYS, permission('overlays:read')],
  input: z.object({ id: z.uuid() }),
  output: Overlay,
  errors: OVERLAY_NOT_FOUND,
  async run({ input, caller: { account_id, user_id }, refuse }, { db }) {
    const found = await overlayOf(db, { account_id, user_id }, input.id);
    if (found === undefined) throw refuse('OVERLAY_NOT_FOUND');
    return found;
  },
});
