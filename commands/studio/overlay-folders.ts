import { z } from 'zod';
import { command, conflict, del, patch, permission, post } from '../../app/operation';
import { MAX_FOLDERS, overlays, overlaysStream } from '../../domain/studio/overlays';
import { foldersOf, OverlayFolder } from '../../views/studio/overlays';
import { FOLDER_NOT_FOUND, OVERLAYS, shownName } from './overlay-parts';

const TOO_MANY = { TOO_MANY_FOLDERS: conflict(`An account has at most ${MAX_FOLDERS} folders of overlays`) };
const FOLDER_CYCLE = { FOLDER_CYCLE: conflict('A folder cannot be in itself or in a folder below it') };

/** Creates a folder of overlays. */
export const createOverlayFolder = command({
  name: 'createOverlayFolder',
  summary: 'Creates a folder of overlays',
  rest: post('/v1/overlay-folders', { status: 201 }),
  graphql: { argument: 'input' },
  guard: [OVERLAYS, permission('overlays:create')],
  input: z.object({ name: shownName, parent_id: z.uuid().nullish() }).meta({ id: 'CreateOverlayFolderInput' }),
  output: OverlayFolder,
  errors: { ...FOLDER_NOT_FOUND, ...TOO_MANY },
  async run({ input, caller: { account_id }, context, act, newId }) {
    const folder = { account_id, name: input.name, parent_id: input.parent_id ?? null };
    const folder_id = newId('overlay-folder');
    const { events } = await act(overlays, overlaysStream(account_id), {
      type: 'overlay_folder:create',
      ...{ folder_id, ...folder },
    });
    const created = events.find((event) => event.type === 'overlay_folder:created');
    return { id: folder_id, ...folder, created_at: created?.created_at ?? new Date(context.now).toISOString() };
  },
});

/** Renames or moves a folder. */
export const updateOverlayFolder = command({
  name: 'updateOverlayFolder',
  summary: 'Renames or moves a folder of overlays; a null parent takes it to the top',
  rest: patch('/v1/overlay-folders/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [OVERLAYS, permission('overlays:edit')],
  input: z
    .object({ id: z.uuid(), name: shownName.nullish(), parent_id: z.uuid().nullish() })
    .meta({ id: 'UpdateOverlayFolderInput' }),
  output: OverlayFolder,
  errors: { ...FOLDER_NOT_FOUND, ...FOLDER_CYCLE },
  async run({ input, caller: { account_id }, act, refuse }, { db }) {
    const { state } = await act(overlays, overlaysStream(account_id), {
      type: 'overlay_folder:update',
      folder_id: input.id,
      name: input.name ?? undefined,
      parent_id: input.parent_id,
    });
    const [row] = await foldersOf(db, account_id, input.id);
    const now = state.folders[input.id];
    if (row === undefined || now === undefined) throw refuse('FOLDER_NOT_FOUND');
    return { ...row, name: now.name, parent_id: now.parent_id };
  },
});

/** Deletes a folder; its contents move to its parent. */
export const deleteOverlayFolder = command({
  name: 'deleteOverlayFolder',
  summary: 'Deletes a folder of overlays; its contents move to its parent',
  rest: del('/v1/overlay-folders/{id}'),
  guard: [OVERLAYS, permission('overlays:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteOverlayFolderResult' }),
  errors: FOLDER_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, act }) {
    await act(overlays, overlaysStream(account_id), { type: 'overlay_folder:delete', folder_id: id });
    return { success: true };
  },
});
