import { z } from 'zod';
import { conflict, feature, forbidden, notFound, type Refuse } from '../../app/operation';
import type { Services } from '../../app/services';
import { overlayOf } from '../../views/studio/overlays';

export const OVERLAYS = feature('feature:overlays');
export const OVERLAY_NOT_FOUND = { OVERLAY_NOT_FOUND: notFound('Overlay not found') };
export const NOT_AN_EDITOR = { NOT_AN_EDITOR: forbidden('Your access to this overlay does not allow changes') };
export const FOLDER_NOT_FOUND = { FOLDER_NOT_FOUND: notFound('Folder not found') };
export const TOKEN_NOT_SHOWN = {
  TOKEN_NOT_SHOWN: conflict('The token was made by an earlier request and is not shown again; rotate it', {
    shows: ['id'],
  }),
};
export const shownName = z.string().trim().min(1).max(100);

interface Acting {
  account_id: string;
  user_id: string | null;
}

/** The overlay, where the caller may change it. @throws DomainError OVERLAY_NOT_FOUND, NOT_AN_EDITOR */
export async function editableOverlay(
  { db }: Pick<Services, 'db'>,
  { account_id, user_id }: Acting,
  id: string,
  refuse: Refuse<typeof OVERLAY_NOT_FOUND & typeof NOT_AN_EDITOR>,
) {
  const found = await overlayOf(db, { account_id, user_id }, id);
  if (found === undefined) throw refuse('OVERLAY_NOT_FOUND');
  if (found.role === 'viewer') throw refuse('NOT_AN_EDITOR');
  return found;
}
