import { z } from 'zod';
import { feature, get, permission, query, whole } from '../../app/operation';
import { foldersOf, OverlayFolder } from '../../views/studio/overlays';

/** Folders of the account's overlays. */
export const overlayFolders = query({
  name: 'overlayFolders',
  summary: "Folders of the account's overlays, oldest first",
  rest: get('/v1/overlay-folders'),
  pages: whole(),
  guard: [feature('feature:overlays'), permission('overlays:read')],
  input: z.object({}),
  output: OverlayFolder,
  run: ({ caller: { account_id } }, { db }) => foldersOf(db, account_id),
});
